"""The calls that most tests make."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.fakes.raw_client import RawAnswer, fetch

CHAT = "/v1/chat/completions"
SHOW = "/api/show"
JSON = [("Content-Type", "application/json")]
# A chat and a show request with room for one more value, as text to be filled by `%`.
CHAT_WITH = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"x":%b}'
SHOW_WITH = b'{"model":"m","x":%b}'
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def to_bytes(value: Any) -> bytes:
    """`value` as UTF-8 JSON; bytes stay what they are."""
    return value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()


def post(url: str, path: str, body: Any, headers: Iterable[tuple[str, str]] = JSON) -> RawAnswer:
    """POST bytes, or a value as JSON, on a connection of its own; the answer is whole."""
    return fetch(url, "POST", path, to_bytes(body), headers)


def get(url: str, path: str) -> RawAnswer:
    """GET on a connection of its own; the answer is whole."""
    return fetch(url, "GET", path)


def openai_error(answer: RawAnswer) -> dict[str, Any]:
    """The error of a /v1 answer, checked for its shape: JSON, the four fields, no more."""
    _check_json(answer)
    body = answer.json()
    assert list(body) == ["error"], body
    error = body["error"]
    assert list(error) == ["message", "type", "param", "code"], body
    assert isinstance(error["message"], str) and error["message"], body
    assert isinstance(error["type"], str) and error["type"], body
    return dict(error)


def ollama_error(answer: RawAnswer) -> str:
    """The text of an /api error, checked for its shape: JSON, `error` alone, a text."""
    _check_json(answer)
    body = answer.json()
    assert list(body) == ["error"], body
    assert isinstance(body["error"], str) and body["error"], body
    return str(body["error"])


def error_text(answer: RawAnswer, path: str) -> str:
    """The message of an error of the API that `path` belongs to, checked for its shape."""
    return ollama_error(answer) if path.startswith("/api") else openai_error(answer)["message"]


def _check_json(answer: RawAnswer) -> None:
    assert answer.header("Content-Type") == "application/json", answer.headers
    assert not answer.cut
    assert answer.status >= 400
