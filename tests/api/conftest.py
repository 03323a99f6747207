"""The application with a fixed clock, a registry of its own and a polite engine on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.call import Call, Reply
from app.factory import create_app
from app.settings import EngineSettings, KeySettings, LoopSettings, ServerSettings, Settings
from app.telemetry.access_log import AccessLog
from tests.fakes.engine_steps import refusing_url
from tests.fakes.lesson_engine import LessonEngine
from tests.fakes.registry_home import RegistryHome

MODEL = "example-org/Tiny-Coder-GGUF:F32"


class SetClock:
    """A clock that stands at noon until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 10, 3, 12, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **time: float) -> None:
        """Let time pass."""
        self.now += timedelta(**time)


class Recording:
    """A gateway that keeps the calls and answers them itself."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self.calls: list[Call] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)

    def call(self, call: Call) -> Reply:
        """A chat completion without a word."""
        self.calls.append(call)
        body = b'{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}]}'
        return Reply.whole(200, [("Content-Type", "application/json")], body)


Build = Callable[..., FlaskClient]
Recorded = tuple[FlaskClient, list[Call]]


@pytest.fixture
def clock() -> SetClock:
    """The time as the application sees it."""
    return SetClock()


@pytest.fixture(scope="session")
def lesson_engine() -> Iterator[LessonEngine]:
    """The engine "alpha"."""
    with LessonEngine(0, "alpha") as engine:
        yield engine


@pytest.fixture
def build(lesson_engine: LessonEngine, registry_home: RegistryHome, clock: SetClock) -> Build:
    """A function that builds the application and gives a client of it.

    The engine serves MODEL, nothing listens for ``down``; ``keys`` are those there are;
    ``access_log`` gets the lines of requests; the others replace settings.
    """
    def built(max_body: int = 100_000, keys: tuple[KeySettings, ...] = (),
              server: dict[str, Any] | None = None, access_log: AccessLog | None = None,
              **loop: Any) -> FlaskClient:
        engines = (EngineSettings(lesson_engine.url, (MODEL,)),
                   EngineSettings(refusing_url(), ("down",)))
        settings = Settings(
            ServerSettings(**{"threads": 4, "max_body": max_body, **(server or {})}),
            LoopSettings(**{"home": registry_home.path, "read_timeout": 10.0,
                            "engines": engines, **loop}), keys)
        return create_app(settings, clock, access_log).test_client()
    return built


@pytest.fixture
def client(build: Build) -> FlaskClient:
    """A client of the application as it is by default."""
    return build()


@pytest.fixture
def recorded(client: FlaskClient) -> Recorded:
    """A client, and the calls that its requests become."""
    services = client.application.extensions["loop"]
    gateway = Recording(services.gateway)
    client.application.extensions["loop"] = replace(services, gateway=gateway)
    return client, gateway.calls
