"""One connection, many requests: however they are cut and however many come at once."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import CHAT, HELLO
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess

COUNT = 5
HASTE = "500ms"  # that a request may take to arrive


def question(number: int, padding: int = 0) -> bytes:
    """A chat that is told from others by its seed, made longer by so many bytes."""
    body = json.dumps({**HELLO, "seed": number, "user": "x" * padding}).encode()
    return (f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


@pytest.fixture(autouse=True)
def echo(engine: RawEngine) -> None:
    """The engine answers each call with its own body."""
    engine.answer_with(lambda exchange: reply(200, exchange.request.body)(exchange))


def seed(client: RawClient) -> int:
    """The seed in the next answer."""
    return int(json.loads(client.answer("POST").body)["seed"])


@pytest.mark.parametrize("padding", [0, 20_000])
def test_requests_that_come_at_once_are_answered_in_turn(
        gateway: GatewayProcess, padding: int) -> None:
    """Also where more has come than is read at a time."""
    with RawClient(gateway.url) as client:
        client.send(b"".join(question(number, padding) for number in range(COUNT)))
        assert [seed(client) for _ in range(COUNT)] == list(range(COUNT))


@pytest.mark.parametrize("cut", [1, 30, 100, -1])
@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_a_request_may_begin_with_the_end_of_the_last_one(
        gateway: GatewayProcess, cut: int, pause: float) -> None:
    """The part that comes early is kept, whoever waits for the rest."""
    first, second = question(0), question(1)
    with RawClient(gateway.url) as client:
        client.send(first + second[:cut])
        assert seed(client) == 0
        time.sleep(pause)  # for longer than a thread waits, and not at all
        client.send(second[cut:])
        assert seed(client) == 1


def test_the_beginning_of_a_head_is_not_waited_for_as_long_as_a_request(
        start_gateway: StartGateway, engine: RawEngine, tmp_path: Path) -> None:
    """A kept connection on which half a head has come has the time of a request, no more."""
    gateway = start_gateway({
        "server": {"body-timeout": HASTE},
        "loop": {"home": f"{tmp_path}", "engines": [{"url": engine.url, "models": ["m"]}]}})
    with RawClient(gateway.url) as client:
        client.send(question(0) + question(1)[:40])
        assert seed(client) == 0
        began = time.monotonic()
        assert client.socket.recv(1) == b""
        assert time.monotonic() - began < 20
