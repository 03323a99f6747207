"""Ollama's answers as a strict client reads them: lines of JSON, or one object.

Source: github.com/ollama/ollama, api/types.go (ChatResponse, GenerateResponse) and docs/api.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.fakes.raw_client import RawAnswer
from tests.fakes.strict_json import strict_json

Line = dict[str, Any]
METRICS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration",
           "eval_count", "eval_duration")
_END = ("done_reason", "logprobs", *METRICS)
_ORDER = {
    "message": ("model", "created_at", "message", "done", *_END),
    "response": ("model", "created_at", "response", "thinking", "done", "done_reason", "context",
                 *METRICS, "tool_calls", "logprobs"),
}
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_CREATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def streaming(answer: RawAnswer) -> RawAnswer:
    """The answer, its head checked for that of a stream."""
    assert answer.status == 200, answer.body
    assert answer.header("Content-Type") == "application/x-ndjson"
    assert answer.header("X-Accel-Buffering") == "no"
    return answer


def arriving(answer: RawAnswer) -> Iterator[Line]:
    """The lines of a stream as they arrive; each is checked, and that none is left open."""
    rest = b""
    for piece in streaming(answer).pieces():
        rest += piece
        while b"\n" in rest:
            raw, _, rest = rest.partition(b"\n")
            yield checked(raw)
    assert not rest, f"a line without an end: {rest!r}"
    assert not answer.cut, "the body does not end cleanly"


def lines(answer: RawAnswer) -> list[Line]:
    """All lines of a stream that succeeds or fails: exactly one of them says so, the last."""
    body = streaming(answer).body
    assert body.endswith(b"\n") and not answer.cut, f"no clean end: {body[-200:]!r}"
    found = [checked(raw) for raw in body[:-1].split(b"\n")]
    ends = [line for line in found if line.get("done") or "error" in line]
    assert found and ends == [found[-1]], found
    return found


def success(answer: RawAnswer) -> tuple[list[Line], Line]:
    """The lines of a good stream, and its last one apart."""
    *said, last = lines(answer)
    assert "error" not in last, last
    return said, last


def failure(answer: RawAnswer) -> tuple[list[Line], str]:
    """The lines of a stream that failed, and the text of its error."""
    *said, last = lines(answer)
    assert list(last) == ["error"] and isinstance(last["error"], str) and last["error"], last
    return said, last["error"]


def whole(answer: RawAnswer) -> Line:
    """The one object of an answer that is no stream."""
    assert answer.status == 200, answer.body
    assert answer.header("Content-Type") == "application/json; charset=utf-8"
    assert not answer.cut
    return checked(answer.body)


def checked(raw: bytes) -> Line:
    """One object: compact, in Ollama's order of fields, with all that clients count on."""
    assert not re.search(rb"\s", _TEXT.sub(b"", raw)), raw
    line: Line = strict_json(raw)
    if "error" not in line:
        _check_fields(line)
    return line


def content(said: list[Line]) -> str:
    """What the lines of a chat say together."""
    return "".join(line["message"]["content"] for line in said)


def response(said: list[Line]) -> str:
    """What the lines of an answer to a prompt say together."""
    return "".join(line["response"] for line in said)


def _check_fields(line: Line) -> None:
    order = _ORDER["message" if "message" in line else "response"]
    assert list(line) == [name for name in order if name in line], list(line)
    assert _CREATED.fullmatch(line["created_at"]), line["created_at"]
    assert type(line["model"]) is str and type(line["done"]) is bool
    if "message" in line:
        _check_message(line["message"])
    else:
        assert type(line["response"]) is str
    if line["done"] and line["done_reason"] not in ("load", "unload"):
        assert all(type(line[name]) is int and line[name] >= 1 for name in METRICS), line
    if not line["done"]:
        assert not set(line) & {"done_reason", "context", *METRICS}, line


def _check_message(message: Line) -> None:
    order = ("role", "content", "thinking", "tool_calls")
    assert list(message) == [name for name in order if name in message], message
    assert message["role"] == "assistant" and type(message["content"]) is str
    assert message.get("thinking") != "" and message.get("tool_calls") != []
    for call in message.get("tool_calls", ()):
        assert list(call) in (["id", "function"], ["function"]), call
        assert list(call["function"]) == ["index", "name", "arguments"], call
        assert isinstance(call["function"]["arguments"], dict), call
