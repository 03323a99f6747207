"""SIGTERM: calls that run end first, no new ones begin, and then nothing is left."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.sse import read_events
from tests.fakes.wire import Cut
from tests.server.calls import CHAT, HELLO, JSON, error_text, get, post, to_bytes
from tests.server.engines.calling import (
    OLLAMA, chat, crowd, retry_after, send, streaming, streams_whole, succeeds,
)
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.scraping import page_of

MESSAGES = "/v1/messages"
STOPPING = "the gateway is stopping"
TERM = signal.SIGTERM
CROWD = 12


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[ManagedGateway]:
    """A gateway with an engine of one slot, and one that ignores SIGTERM; started for the test."""
    with ManagedGateway(tmp_path, [engine("m", slots=1), engine("deaf", "--ignore-term")]) as found:
        yield found
    assert "was sent SIGKILL" not in found.log()


@pytest.fixture
def hurried(tmp_path: Path) -> Iterator[ManagedGateway]:
    """Another one, whose calls have little time to end in."""
    entries = [engine(["m", "deaf"], "--ignore-term", slots=1, **{"stop-timeout": "300ms"})]
    found = ManagedGateway(tmp_path, entries)
    found.settings["server"]["stop-timeout"] = "300ms"
    with found:
        yield found
    assert "was sent SIGKILL" not in found.log()


def tell(gateway: ManagedGateway, *signals: int) -> None:
    """Send the master these signals, each when the one before has had its effect."""
    for signum in signals:
        os.kill(gateway.pid, signum)
        wait_until(lambda: is_stopping(gateway), "the gateway to know that it is to end")


def is_stopping(gateway: ManagedGateway) -> bool:
    """Whether it says so, or is gone."""
    try:
        answer = get(gateway.url, "/health")
    except (OSError, Cut):
        return True
    return (answer.status, answer.body) == (503, b'{"status":"stopping"}')


def is_refused(gateway: ManagedGateway) -> bool:
    """Whether nothing listens any more."""
    try:
        socket.create_connection(("127.0.0.1", gateway.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def is_told(answer: RawAnswer, path: str = CHAT) -> None:
    """A call that comes too late is a 503 in the API's shape, and the connection closes."""
    assert answer.status == 503
    if path != MESSAGES:
        assert error_text(answer, path) == STOPPING
    assert answer.json()["error"] and retry_after(answer) >= 1
    assert answer.header("Connection") == "close"


def error_in(answer: RawAnswer) -> str:
    """The message in the last event of a stream, which has to be an error."""
    events, rest = read_events(answer.body)
    assert not rest and not answer.cut
    return str(events[-1].json()["error"]["message"])


def test_calls_end_and_none_begin(gateway: ManagedGateway) -> None:
    """A stream and a call that waits behind it are whole; what comes later is a 503."""
    gate = gateway.directory / "gate"
    with streaming(gateway.url, "m", f"until:{gate}") as stream, crowd(gateway.url) as calls, \
            RawClient(gateway.url) as kept:
        succeeds(kept.request("GET", "/v1/models").whole())
        waiting = calls.chat("m")
        gateway.wait_for_queue("m", 1)
        os.kill(gateway.pid, TERM)
        wait_until(lambda: is_stopping(gateway), "the signal")
        is_told(kept.request("POST", CHAT, JSON, to_bytes(HELLO)).whole())
        for path in (CHAT, "/v1/completions", OLLAMA, MESSAGES, "/completion"):
            is_told(post(gateway.url, path, HELLO), path)
        listed = get(gateway.url, "/v1/models")
        assert (listed.status, listed.header("Connection")) == (200, "close")
        assert gateway.engine("m")["running"] == 1
        gate.touch()
        assert len(streams_whole(stream.answer)) == 3
        succeeds(waiting.result())
    wait_until(lambda: is_refused(gateway), "the end")


def test_the_time_to_end_in_is_limited(hurried: ManagedGateway) -> None:
    """Then a stream ends by an error event, a call that waits by a 503, and engines are killed."""
    never = hurried.directory / "never"
    with streaming(hurried.url, "m", f"until:{never}") as stream, crowd(hurried.url) as calls:
        waiting, native = calls.chat("m"), calls.ask(post, OLLAMA, {
            "model": "deaf", "messages": [{"role": "user", "content": f"until:{never}"}]})
        hurried.wait_for_queue("m", 1)
        hurried.journal.wait_for("begin", "deaf")
        os.kill(hurried.pid, TERM)
        assert error_in(stream.answer) == STOPPING
        is_told(waiting.result())
        assert native.result().body.endswith(b'{"error":"the gateway is stopping"}\n')


IN_HASTE = {"int": [signal.SIGINT], "term, term": [TERM, TERM],
            "term, quit": [TERM, signal.SIGQUIT]}


@pytest.mark.parametrize("signals", IN_HASTE.values(), ids=IN_HASTE)
def test_haste(gateway: ManagedGateway, signals: list[int]) -> None:
    """A second signal, or one of another kind, ends calls at once and engines without a word."""
    never = gateway.directory / "never"
    with streaming(gateway.url, "deaf", f"until:{never}") as stream:
        tell(gateway, *signals)
        assert error_in(stream.answer) == STOPPING
    assert gateway.stop() == 0
    assert not gateway.journal.entries("ignored")


def test_silent_connections_do_not_hold_up_the_end(hurried: ManagedGateway) -> None:
    """Neither those between two requests, nor half a request, nor a client that takes no bytes."""
    with RawClient(hurried.url), RawClient(hurried.url) as half, RawClient(hurried.url) as kept, \
            RawClient(hurried.url) as body, RawClient(hurried.url) as full:
        half.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
        body.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        succeeds(kept.request("GET", "/v1/models").whole())
        send(full, "m", "events:2000000", stream=True)
        hurried.journal.wait_for("begin", "m")
        assert hurried.stop() == 0


HALF = {"chat": (CHAT, "Content-Length: 1000"), "chunks": (CHAT, "Transfer-Encoding: chunked"),
        "show": ("/api/show", "Content-Length: 1000"), "native": (OLLAMA, "Content-Length: 1000"),
        "upload": (f"/api/blobs/sha256:{'1' * 64}", "Content-Length: 1000"),
        "create": ("/api/create", "Content-Length: 1000"),
        "upstream": ("/upstream/m/x", "Content-Length: 1000"),
        "too_large": (CHAT, "Content-Length: 999999")}


@pytest.mark.parametrize("late", [False, True])
def test_a_body_that_is_still_coming_ends_by_a_503(hurried: ManagedGateway, late: bool) -> None:
    """Whether it began before the signal or after it, once there is no more time for calls."""
    never = hurried.directory / "never"
    with ExitStack() as stack:
        stream = stack.enter_context(streaming(hurried.url, "m", f"until:{never}"))
        clients = {name: stack.enter_context(RawClient(hurried.url)) for name in HALF}
        if late:
            tell(hurried, TERM)
        for name, (path, framing) in HALF.items():
            clients[name].send(f"POST {path} HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n".encode()
                               + (b"9\r\n" if "chunked" in framing else b"") + b"{")
        if not late:
            wait_until(lambda: in_flight(hurried) >= len(HALF) + 1, "the bodies")
            os.kill(hurried.pid, TERM)
        for name, client in clients.items():
            is_told(client.answer("POST").whole(), HALF[name][0])
        assert error_in(stream.answer) == STOPPING
    assert hurried.stop() == 0
    logged = [each for each in hurried.requests() if each["status"] != 200]
    assert [(each["status"], each["error"], each["closed_by"]) for each in logged] == [
        (503, "stopping", "gateway")] * len(HALF)


def in_flight(gateway: ManagedGateway) -> float:
    """How many requests are being answered, but for the one that asks."""
    return page_of(gateway.url).value("loop_calls_in_flight") - 1


def test_every_connection_is_answered_or_refused(hurried: ManagedGateway) -> None:
    """From the signal to the end nobody waits in vain, and nobody gets half an answer.

    A crowd that comes again and again does not hold up the end.
    """
    outcomes: list[str] = []

    def knock() -> None:
        while "refused" not in outcomes[-3:]:
            outcomes.append(knocked(hurried))

    with streaming(hurried.url, "m", f"until:{hurried.directory / 'never'}"):
        os.kill(hurried.pid, TERM)
        clients = [threading.Thread(target=knock) for _ in range(CROWD)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(20)
    assert set(outcomes) <= {"served", "told", "reset", "refused"}
    # The kernel has made a few connections at the moment in which nothing listens any more.
    assert outcomes.count("told") > CROWD and outcomes.count("reset") <= CROWD, outcomes


def knocked(gateway: ManagedGateway) -> str:
    """What became of a new connection with one call."""
    try:
        answer = chat(gateway.url, "nobody")
    except ConnectionRefusedError:
        return "refused"
    except (ConnectionResetError, BrokenPipeError, Cut):
        return "reset"
    if answer.status == 404:  # the signal has not arrived yet
        return "served"
    is_told(answer)
    return "told"


def test_there_is_one_worker_whatever_is_asked(gateway: ManagedGateway) -> None:
    """And it is always the same."""
    workers = gateway.workers()
    for signum in (signal.SIGUSR2, signal.SIGTTIN, signal.SIGHUP):
        before = gateway.log().count("Handling signal")
        os.kill(gateway.pid, signum)
        wait_until(lambda before=before: gateway.log().count("Handling signal") > before, "it")
        succeeds(chat(gateway.url, "m"))
        assert gateway.workers() == workers
