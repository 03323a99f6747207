"""Juno's fields on every JSON call: what is refused, and what the gateway makes of the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.call import Call, Priority
from tests.api.conftest import MODEL, Build, Recorded
from tests.fakes.strict_json import strict_json

WRONG_TYPE = "has the wrong JSON type"
BLANK = "must not be blank"
PRIORITIES = 'must match "HIGH|NORMAL|LOW"'
TOO_LONG = "must have at most 256 characters"
PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses",
         "/v1/rerank", "/v1/anything", "/v1/inference", "/v1/inference/stream",
         "/chat/completions", "/completions", "/completion", "/infill", "/tokenize", "/embeddings"]
FIELDS = {"model": MODEL, "modelId": MODEL, "messages": [{"role": "user", "content": "hi"}]}

WRONG: list[tuple[str, Any, str]] = [
    *[("x_juno_priority", value, PRIORITIES) for value in ("URGENT", "high", " HIGH", "HIGH ")],
    *[("x_juno_priority", value, BLANK) for value in ("", " ")],
    *[("x_juno_priority", value, WRONG_TYPE) for value in (1, True, ["HIGH"], {})],
    *[("x_juno_session_id", value, BLANK) for value in ("", " \t")],
    *[("x_juno_session_id", value, WRONG_TYPE) for value in (5, False, ["s"], {})],
    *[("x_juno_session_id", value, TOO_LONG) for value in ("s" * 257, "é" * 5000)],
    *[("x_juno_top_k", value, WRONG_TYPE) for value in ("5", 1.5, True, [5], {})],
    *[("x_juno_top_k", value, "must be greater than or equal to 0") for value in (-1, -5.0)],
]


def call_of(recorded: Recorded, path: str, **fields: Any) -> Call:
    """The call that a request becomes."""
    client, calls = recorded
    answer = client.post(path, data=json.dumps({**FIELDS, **fields}))
    assert answer.status_code == 200, answer.data
    return calls.pop()


def problem(client: FlaskClient, path: str, **fields: Any) -> tuple[str, str]:
    """The param and the rule that a request breaks."""
    answer = client.post(path, data=json.dumps({**FIELDS, **fields}))
    assert answer.status_code == 400, answer.data
    error = strict_json(answer.data)["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", None)
    return error["param"], error["message"].removeprefix(f"'{error['param']}' ")


@pytest.mark.parametrize(("name", "value", "rule"), WRONG, ids=lambda value: str(value)[:30])
def test_a_wrong_value_is_told(client: FlaskClient, name: str, value: Any, rule: str) -> None:
    """As of any other field: its name is the param."""
    assert problem(client, PATHS[0], **{name: value}) == (name, rule)


@pytest.mark.parametrize("path", PATHS)
def test_a_wrong_value_is_told_on_every_endpoint(client: FlaskClient, path: str) -> None:
    """No engine gets a body with a field that is not its own."""
    assert problem(client, path, x_juno_priority="URGENT") == ("x_juno_priority", PRIORITIES)


def test_anthropics_clients_are_told_in_their_shape(client: FlaskClient) -> None:
    """The extension fields are checked on /v1/messages too."""
    answer = client.post("/v1/messages", data=json.dumps({**FIELDS, "x_juno_top_k": "x"}))
    assert answer.status_code == 400
    assert strict_json(answer.data)["error"]["message"] == f"'x_juno_top_k' {WRONG_TYPE}"


@pytest.mark.parametrize(("fields", "param"), [
    ({"x_juno_top_k": -1, "temperature": 3}, "temperature"),
    ({"x_juno_top_k": "x", "temperature": 3}, "x_juno_top_k"),
    ({"x_juno_priority": "x", "model": ""}, "model"),
    ({"x_juno_priority": "x", "x_juno_session_id": ""}, "x_juno_priority"),
    ({"x_juno_session_id": "", "x_juno_top_k": "x"}, "x_juno_top_k")])
def test_the_first_problem_is_told(client: FlaskClient, fields: Any, param: str) -> None:
    """By path, a wrong type before any other, whichever part of the body it is in."""
    assert problem(client, PATHS[0], **fields)[0] == param


@pytest.mark.parametrize("path", [*PATHS, "/v1/messages"])
def test_a_call_knows_what_it_was_asked_for(
        recorded: Recorded, path: str) -> None:
    """Priority and session travel with the call, and nothing of them in its body."""
    call = call_of(recorded, path, x_juno_priority="LOW", x_juno_session_id="sess-1")
    assert (call.priority, call.session) == (Priority.LOW, "sess-1")
    assert b"x_juno" not in call.body.raw


@pytest.mark.parametrize("path", [*PATHS, "/v1/messages"])
@pytest.mark.parametrize("fields", [{}, {"x_juno_priority": None, "x_juno_session_id": None,
                                         "x_juno_top_k": None}], ids=["absent", "null"])
def test_without_them_a_call_is_like_any_other(
        recorded: Recorded, path: str, fields: dict[str, None]) -> None:
    """Normal priority and no conversation; null counts as absent."""
    call = call_of(recorded, path, **fields)
    assert (call.priority, call.session) == (Priority.NORMAL, None)
    assert b"x_juno" not in call.body.raw


@pytest.mark.parametrize("path", [path for path in PATHS if "inference" not in path])
@pytest.mark.parametrize("n", [1, 2, 0, "many", 2.5, None, [3]])
def test_a_call_knows_how_many_choices_are_wanted(
        recorded: Recorded, path: str, n: Any) -> None:
    """The value as it is: what it must be is not decided here."""
    given = {} if n is None else {"n": n}
    assert call_of(recorded, path, n=n).choices == given
    assert call_of(recorded, path, n_cmpl=2, n=n).choices == {"n_cmpl": 2, **given}
    assert call_of(recorded, path).choices == {}


LONGEST = ["s" * 256, "北" * 256, " s ", "sess-my-conversation-001", "\u0000"]


@pytest.mark.parametrize("session", LONGEST, ids=["long", "wide", "spaced", "usual", "nul"])
def test_a_session_is_any_text(
        recorded: Recorded, session: str) -> None:
    """As it is written, up to 256 characters."""
    assert call_of(recorded, PATHS[0], x_juno_session_id=session).session == session


@pytest.mark.parametrize(("value", "top_k"), [
    ("5.0", 5), ("5e0", 5), ("0.0", 0), ("-0", 0), ("-0.0", 0), ("1e3", 1000), ("7", 7)])
@pytest.mark.parametrize("path", [path for path in PATHS if "inference" not in path])
def test_a_whole_number_reaches_the_engine_as_one(
        recorded: Recorded, path: str, value: str, top_k: int) -> None:
    """However it is written."""
    client, calls = recorded
    body = json.dumps(FIELDS)[:-1] + f', "x_juno_top_k": {value}}}'
    assert client.post(path, data=body).status_code == 200
    assert calls.pop().body.raw.endswith(f'"top_k":{top_k}}}'.encode())


LIMIT = "max_completion_tokens"


@pytest.mark.parametrize("path", PATHS[:2])
@pytest.mark.parametrize(("value", "rule"), [
    (0, "must be greater than 0"), (-1, "must be greater than 0"), ("5", WRONG_TYPE),
    (1.5, WRONG_TYPE), (True, WRONG_TYPE), ([5], WRONG_TYPE)])
def test_the_newer_limit_is_checked(
        client: FlaskClient, path: str, value: Any, rule: str) -> None:
    """As the older one of a chat."""
    assert problem(client, path, **{LIMIT: value}) == (LIMIT, rule)


@pytest.mark.parametrize("path", PATHS[:2])
def test_the_newer_limit_wins(recorded: Recorded, path: str) -> None:
    """Whichever name an engine knows, it is told one limit."""
    raw = call_of(recorded, path, **{"max_tokens": 9, LIMIT: 5}).body.raw
    assert json.loads(raw) == {**FIELDS, "max_tokens": 5, LIMIT: 5}


@pytest.mark.parametrize("path", ["/v1/embeddings", "/completions", "/chat/completions"])
def test_other_endpoints_get_both_limits_as_they_are(
        recorded: Recorded, path: str) -> None:
    """What the engine makes of them there is its own affair."""
    fields = {"max_tokens": 9, LIMIT: 0}
    assert json.loads(call_of(recorded, path, **fields).body.raw) == {**FIELDS, **fields}


def test_an_echo_needs_no_token(recorded: Recorded) -> None:
    """``max_tokens`` 0 is a good text completion: the prompt's own probabilities."""
    assert json.loads(call_of(recorded, PATHS[1], max_tokens=0).body.raw)["max_tokens"] == 0


def test_a_default_model_and_the_fields_together(build: Build) -> None:
    """A body that is changed twice is sent as one."""
    body = {"messages": FIELDS["messages"], "x_juno_top_k": 3, "x_juno_priority": "HIGH"}
    answer = build(default_model=MODEL).post(PATHS[0], data=json.dumps(body))
    assert strict_json(answer.data)["received_fields"] == ["messages", "top_k", "model"]
