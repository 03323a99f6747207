"""What a client makes of an answer: success or error, and never both, neither or something else."""

from __future__ import annotations

from typing import Any

from tests.fakes.raw_client import RawAnswer
from tests.fakes.sse import Event, read_events
from tests.server.calls import openai_error
from tests.server.stream.apis import Api

SUCCESS, IN_BAND, REFUSED = "success", "an error in the stream", "an error status"


def outcome(api: Api, answer: RawAnswer) -> str:
    """Which of the three it is; raises AssertionError where a client could not tell."""
    if answer.status >= 400:
        refusal(api, answer)
        return REFUSED
    assert answer.status == 200
    body = answer.body
    assert not answer.cut, f"the body does not end cleanly: {body[-200:]!r}"
    if answer.header("Content-Type") == "application/json":
        assert isinstance(answer.json(), dict)
        return SUCCESS
    assert answer.header("Content-Type") == "text/event-stream"
    return _of_stream(api, body)


def _of_stream(api: Api, body: bytes) -> str:
    events, rest = read_events(body)
    errors = [place for place, event in enumerate(events) if error_in(api, event)]
    ends = [event for event in events if api.ends(event)]
    assert not (errors and ends), f"both an end and an error: {body!r}"
    assert errors or ends, f"neither an end nor an error: {body!r}"
    assert not rest, f"something is left open: {rest!r}"
    if ends:
        return SUCCESS
    assert errors == [len(events) - 1], f"not one error, or not the last event: {body!r}"
    return IN_BAND


def refusal(api: Api, answer: RawAnswer) -> dict[str, Any]:
    """The error of a whole answer, checked for the shape that its API has."""
    if not api.anthropic:
        return openai_error(answer)
    assert answer.header("Content-Type") == "application/json"
    body = answer.json()
    assert list(body) == ["type", "error"] and body["type"] == "error", body
    assert list(body["error"]) == ["type", "message"], body
    assert body["error"]["type"] and body["error"]["message"], body
    return dict(body["error"])


def error_in(api: Api, event: Event) -> dict[str, Any] | None:
    """The error that a client of this API sees in an event, None where it sees none."""
    found = event.json()
    told = found.get("error") if isinstance(found, dict) else None
    if not told:
        return None
    error = dict(told) if isinstance(told, dict) else {"message": told}
    assert isinstance(error["message"], str) and error["message"], event
    if api.anthropic:
        assert event.name == "error" and found["type"] == "error", event
        assert list(error) == ["type", "message"], event
    return error


def last_error(api: Api, answer: RawAnswer) -> dict[str, Any]:
    """The error that the gateway itself put at the end of a stream, checked for its fields."""
    event = read_events(answer.body)[0][-1]
    error = error_in(api, event)
    assert error, event
    if not api.anthropic:
        assert list(error) == ["message", "type", "param", "code"], error
        assert error["type"] == "server_error" and error["param"] is None, error
    return error
