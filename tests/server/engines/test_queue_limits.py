"""A queue that is full, or takes too long, is a 429 that says when to come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.fakes.raw_client import RawAnswer, RawClient
from tests.server.calls import error_text, openai_error, post
from tests.server.engines.calling import (
    EMBED, OLLAMA, Crowd, body, chat, crowd, retry_after, send, streaming, succeeds,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine

MAX_WAIT = 1.0  # seconds
ROUTES = ["/v1/chat/completions", "/v1/embeddings", OLLAMA, EMBED]


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway whose queues take two calls, for a second."""
    return start([engine(["full", "late", "measured", "freed"], slots=1),
                  engine("loading", "--load", "1.6", slots=1)],
                 queue={"size": 2, "max-wait": f"{MAX_WAIT:.0f}s"})


@pytest.fixture
def calls(gateway: ManagedGateway) -> Iterator[Crowd]:
    """Calls in the background."""
    with crowd(gateway.url) as found:
        yield found


def too_many(answer: RawAnswer, path: str = "/v1") -> int:
    """The seconds after which a 429 says to come back; its shape is that of the API."""
    assert answer.status == 429, (answer.status, answer.body)
    assert error_text(answer, path)
    if path.startswith("/v1"):
        found = openai_error(answer)
        assert (found["type"], found["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert retry_after(answer) >= 1
    return retry_after(answer)


def hold(gateway: ManagedGateway, calls: Crowd, model: str, queued: int) -> Callable[[], None]:
    """Take the model's one slot and so many places behind it; the answer gives the slot back."""
    gate = gateway.directory / f"{model}.gate"
    first = calls.chat(model, f"id:holder until:{gate}")
    gateway.journal.one("begin", model, "holder")
    behind = [calls.chat(model, f"id:{number}") for number in range(queued)]
    gateway.wait_for_queue(model, queued)

    def release() -> None:
        gate.touch()
        for future in [first, *behind]:
            succeeds(future.result())
    return release


def test_a_full_queue_refuses(gateway: ManagedGateway, calls: Crowd) -> None:
    """At once, on every route, in the API's own shape; streams too."""
    succeeds(chat(gateway.url, "full"))
    release = hold(gateway, calls, "full", 2)
    for path in ROUTES:
        fields = {**body("full"), "input": "id:refused"}
        too_many(post(gateway.url, path, fields), path)
    too_many(chat(gateway.url, "full", stream=True))
    assert gateway.engine("full")["queued"] == 2
    release()
    succeeds(chat(gateway.url, "full"))
    assert not gateway.journal.entries(id="refused")


def test_who_leaves_makes_room(gateway: ManagedGateway, calls: Crowd) -> None:
    """The place of a client that left is free for another."""
    succeeds(chat(gateway.url, "freed"))
    release = hold(gateway, calls, "freed", 1)
    with RawClient(gateway.url) as client:
        send(client, "freed", "id:gone")
        gateway.wait_for_queue("freed", 2)
        too_many(chat(gateway.url, "freed"))
    gateway.wait_for_queue("freed", 1)
    other = calls.chat("freed", "id:other")
    gateway.wait_for_queue("freed", 2)
    release()
    succeeds(other.result())
    assert not gateway.journal.entries(id="gone")


def test_who_waits_too_long_is_refused(gateway: ManagedGateway, calls: Crowd) -> None:
    """After the time that a call may wait, and it is never served."""
    with streaming(gateway.url, "late", "id:holder silent:1"):
        asked = time.monotonic()
        openai, native = calls.chat("late", "id:late"), post(
            gateway.url, OLLAMA, body("late", "id:late"))
        too_many(native, OLLAMA)
        too_many(openai.result())
        assert time.monotonic() - asked >= MAX_WAIT * 0.9
        assert gateway.engine("late")["queued"] == 0
    succeeds(chat(gateway.url, "late", "id:after"))
    assert gateway.journal.order("begin", "late") == ["holder", "after"]


def test_the_start_of_an_engine_does_not_count(gateway: ManagedGateway, calls: Crowd) -> None:
    """Calls may wait for it for longer than for a slot."""
    for future in [calls.chat("loading", f"id:{number}") for number in range(2)]:
        succeeds(future.result())


def test_coming_back_depends_on_how_long_calls_take(
        gateway: ManagedGateway, calls: Crowd) -> None:
    """The wait is made of measured times: longer where calls are, and where more of them wait."""
    for _ in range(3):
        succeeds(chat(gateway.url, "measured", "answer:0.8"))
    release = hold(gateway, calls, "measured", 2)
    assert 2 <= too_many(chat(gateway.url, "measured")) <= 10
    release()
