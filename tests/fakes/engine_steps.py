"""Steps for the scripts of a RawEngine: whole answers, halves of them, waits and ends."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable

from tests.fakes.raw_engine import Exchange, Step
from tests.fakes.wire import Headers

COMPLETION = json.dumps({
    "id": "c", "object": "chat.completion", "created": 1, "model": "raw",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "hi"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}).encode()
JSON_TYPE: Headers = [("Content-Type", "application/json")]


def head(status: int, headers: Iterable[tuple[str, str]], reason: str = "Whatever") -> bytes:
    """A status line and header fields with the empty line that ends them."""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def whole(status: int = 200, body: bytes = COMPLETION,
          headers: Iterable[tuple[str, str]] = JSON_TYPE) -> bytes:
    """A complete answer with its Content-Length."""
    return head(status, [*headers, ("Content-Length", str(len(body)))]) + body


def reply(status: int = 200, body: bytes = COMPLETION,
          headers: Iterable[tuple[str, str]] = JSON_TYPE) -> Step:
    """Send a complete answer and keep the connection."""
    return send(whole(status, body, headers))


def send(data: bytes) -> Step:
    """Send these bytes."""
    return lambda exchange: exchange.send(data)


def chunks(*data: bytes) -> Step:
    """Send each of these as a chunk of its own; b"" is the last chunk."""
    def step(exchange: Exchange) -> None:
        for piece in data:
            exchange.chunk(piece)
    return step


def mark(event: threading.Event) -> Step:
    """Tell the test that this point is reached."""
    return lambda exchange: event.set()


def hold(event: threading.Event) -> Step:
    """Go on only after the test says so, or never when the peer leaves first."""
    return lambda exchange: exchange.wait(event)


def pause(seconds: float) -> Step:
    """Say nothing for so long."""
    return lambda exchange: time.sleep(seconds)


def silence(exchange: Exchange) -> None:
    """Say nothing until the peer leaves or the engine stops."""
    exchange.wait(threading.Event())


def close(exchange: Exchange) -> None:
    """Close the connection."""
    exchange.close()


def reset(exchange: Exchange) -> None:
    """Reset the connection."""
    exchange.reset()


def by_connection(first: Step, later: Step) -> Callable[[Exchange], None]:
    """One answer for requests on the first connection, another for those on later ones."""
    def step(exchange: Exchange) -> None:
        (first if exchange.request.connection == 1 else later)(exchange)
    return step


def refusing_url() -> str:
    """The base URL of a port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
