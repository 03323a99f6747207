"""How the tests of Juno's API ask, and what they make of its streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakes.raw_client import RawAnswer, RawClient, request_bytes
from tests.fakes.sse import read_events
from tests.fakes.strict_json import strict_json
from tests.server.calls import JSON, to_bytes

WHOLE, STREAM = "/v1/inference", "/v1/inference/stream"
ID = "550e8400-e29b-41d4-a716-446655440000"
HELLO: dict[str, Any] = {
    "requestId": ID, "modelId": "m", "messages": [{"role": "user", "content": "hi"}]}


def send(client: RawClient, path: str = STREAM, **fields: Any) -> None:
    """Send a request and wait for nothing."""
    headers = [("Host", client.host), *JSON]
    client.send(request_bytes("POST", path, headers, to_bytes({**HELLO, **fields})))


def arriving(answer: RawAnswer) -> Iterator[dict[str, Any]]:
    """The events of a stream as they arrive."""
    assert (answer.status, answer.header("Content-Type")) == (200, "text/event-stream")
    rest = b""
    for piece in answer.pieces():
        rest += piece
        while b"\n\n" in rest:
            event, _, rest = rest.partition(b"\n\n")
            assert event.startswith(b"data: ")
            yield strict_json(event[6:])


def told(answer: RawAnswer) -> tuple[str, dict[str, Any]]:
    """The text of a whole stream and its last event, checked for the shape of all of them."""
    assert (answer.status, answer.header("Content-Type")) == (200, "text/event-stream")
    assert (answer.header("Cache-Control"), answer.header("X-Accel-Buffering")) == (
        "no-cache", "no")
    found, rest = read_events(answer.body)
    assert not rest and not answer.cut
    *pieces, last = [event.json() for event in found]
    for piece in pieces:
        assert list(piece) == ["requestId", "token", "isComplete"]
        assert piece["isComplete"] is False and piece["token"]
    assert list(last)[:4] == ["requestId", "token", "isComplete", "finishReason"]
    assert (last["token"], last["isComplete"]) == ("", True)
    assert {event["requestId"] for event in (*pieces, last)} == {ID}
    return "".join(piece["token"] for piece in pieces), last


def success(answer: RawAnswer) -> tuple[str, str]:
    """The text of a stream that ended well, and why it ended."""
    text, last = told(answer)
    assert len(last) == 4
    return text, last["finishReason"]


def failure(answer: RawAnswer) -> tuple[str, dict[str, Any]]:
    """The text of a stream that broke off, and its error."""
    text, last = told(answer)
    assert last["finishReason"] == "error" and list(last)[4:] == ["error"]
    assert list(last["error"]) == ["message", "type", "param", "code"]
    return text, last["error"]
