"""One id for a request: in the answer, at the engine, and in the log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from app.settings import EngineSettings
from tests.api.conftest import Build
from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine

HEADER = "X-Request-Id"
CHAT = "/v1/chat/completions"
HELLO = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """An engine that has an id of its own for every request."""
    with RawEngine(reply(headers=[(HEADER, "theirs"), ("Content-Type", "application/json")])) as e:
        yield e


@pytest.fixture
def client(build: Build, engine: RawEngine) -> FlaskClient:
    """A client of the application with that engine."""
    return build(engines=(EngineSettings(engine.url, ("m",)),))


@pytest.mark.parametrize("given", [
    "id-1", "a", "req_0123456789abcdef", "550e8400-e29b-41d4-a716-446655440000", "A.b:c/d+e=f",
    "x" * 128])
def test_a_plain_id_of_the_client_is_used(
        client: FlaskClient, engine: RawEngine, given: str) -> None:
    """It stands in the answer and at the engine, once."""
    answer = client.post(CHAT, data=HELLO, headers={HEADER: given})
    assert answer.status_code == 200
    assert answer.headers.getlist(HEADER) == [given]
    assert engine.requests[0].all(HEADER) == [given]


@pytest.mark.parametrize("given", [
    None, "", " ", "two words", "a,b", "x" * 129, "tab\there", "grün", "\xff", "a;b", "<script>",
    "%0d%0aX: y", '"quoted"'])
def test_any_other_is_replaced(
        client: FlaskClient, engine: RawEngine, given: str | None) -> None:
    """What could break a log line or a header gets a fresh id instead."""
    headers = {} if given is None else {HEADER: given}
    answer = client.post(CHAT, data=HELLO, headers=headers)
    [found] = answer.headers.getlist(HEADER)
    assert re.fullmatch("[0-9a-f]{32}", found)
    assert engine.requests[0].all(HEADER) == [found]


def test_every_request_has_its_own(client: FlaskClient, engine: RawEngine) -> None:
    """No two are alike."""
    found = [client.post(CHAT, data=HELLO, buffered=True).headers[HEADER] for _ in range(20)]
    assert len(set(found)) == 20
    assert [request.all(HEADER) for request in engine.requests] == [[each] for each in found]


@pytest.mark.parametrize(("method", "path", "body", "status"), [
    ("GET", "/", None, 200), ("GET", "/health", None, 200), ("GET", "/v1/models", None, 200),
    ("GET", "/api/tags", None, 200), ("HEAD", "/api/version", None, 200),
    ("GET", "/nope", None, 404), ("GET", "/api/nope", None, 404), ("PUT", "/v1/models", None, 405),
    ("POST", CHAT, "{", 400), ("POST", CHAT, "{}", 400), ("POST", "/api/show", "{}", 400),
    ("POST", "/api/show", '{"model":"nope"}', 404), ("POST", CHAT, HELLO, 200),
    ("POST", CHAT, HELLO.replace('"m"', '"nope"'), 404), ("POST", CHAT, "x" * 200_000, 413)])
def test_every_answer_carries_it(
        client: FlaskClient, method: str, path: str, body: str | None, status: int) -> None:
    """Success or error, on every route."""
    answer = client.open(path, method=method, data=body, headers={HEADER: "id-7"})
    assert answer.status_code == status
    assert answer.headers.getlist(HEADER) == ["id-7"]
