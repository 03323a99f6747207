"""POST /v1/inference and POST /v1/inference/stream: what is checked, and what it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.call import Call, Passing, Priority
from tests.api.conftest import MODEL, Build, Recorded
from tests.fakes.strict_json import strict_json

WHOLE, STREAM = "/v1/inference", "/v1/inference/stream"
USER = [{"role": "user", "content": "hi"}]
WRONG_TYPE = "has the wrong JSON type"
BLANK = "must not be blank"
EMPTY = "must not be empty"
NOT_NEGATIVE = "must be greater than or equal to 0"

FIELDS: list[tuple[dict[str, Any], str, str]] = [
    *[({"messages": value}, "messages", EMPTY) for value in (None, [])],
    *[({"messages": value}, "messages", WRONG_TYPE) for value in ("hi", {}, 5)],
    ({"messages": [5]}, "messages[0]", WRONG_TYPE),
    ({"messages": [*USER, {"role": "robot"}]}, "messages[1].role",
     'must match "system|developer|user|assistant|tool"'),
    *[({"modelId": value}, "modelId", WRONG_TYPE) for value in (5, [], True)],
    *[({"modelId": value}, "modelId", BLANK) for value in ("", " ", None)],
    *[({"requestId": value}, "requestId", WRONG_TYPE) for value in (5, {}, False)],
    *[({"requestId": value}, "requestId", BLANK) for value in ("", "\n")],
    ({"requestId": "r" * 257}, "requestId", "must have at most 256 characters"),
    *[({"sampling": value}, "sampling", WRONG_TYPE) for value in ("x", [], 5, True)],
]
SAMPLING: list[tuple[str, Any, str]] = [
    ("temperature", 2.1, "must be less than or equal to 2.0"),
    ("temperature", -0.1, "must be greater than or equal to 0.0"),
    ("topP", 1.1, "must be less than or equal to 1.0"),
    ("topP", -1, "must be greater than or equal to 0.0"),
    ("topK", -1, NOT_NEGATIVE), ("topK", 0.5, WRONG_TYPE),
    ("repetitionPenalty", 0.9, "must be greater than or equal to 1.0"),
    ("maxTokens", 0, "must be greater than 0"), ("maxTokens", -3, "must be greater than 0"),
    ("maxTokens", 1.5, WRONG_TYPE),
    ("priority", "URGENT", 'must match "HIGH|NORMAL|LOW"'), ("priority", "", BLANK),
    *[(name, value, WRONG_TYPE) for value in ("x", [], {})
      for name in ("temperature", "topP", "topK", "repetitionPenalty", "maxTokens", "greedy")],
    *[(name, True, WRONG_TYPE)
      for name in ("temperature", "topP", "topK", "repetitionPenalty", "maxTokens", "priority")],
    *[("greedy", value, WRONG_TYPE) for value in (0, 1, "true")],
]


def asked(**fields: Any) -> str:
    """A request with these fields on top."""
    return json.dumps({"modelId": MODEL, "messages": USER, **fields})


def problem(client: FlaskClient, path: str, body: str) -> tuple[str, str]:
    """The param and the rule that a request breaks, the answer checked for its shape."""
    answer = client.post(path, data=body)
    assert (answer.status_code, answer.content_type) == (400, "application/json")
    error = strict_json(answer.data)["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", None)
    return error["param"], error["message"].removeprefix(f"'{error['param']}' ")


@pytest.mark.parametrize("path", [WHOLE, STREAM])
@pytest.mark.parametrize(("fields", "param", "rule"), FIELDS, ids=lambda value: str(value)[:30])
def test_a_wrong_field_is_told(
        client: FlaskClient, path: str, fields: dict[str, Any], param: str, rule: str) -> None:
    """By Juno's name for it, and before the stream begins."""
    assert problem(client, path, asked(**fields)) == (param, rule)


@pytest.mark.parametrize(("name", "value", "rule"), SAMPLING, ids=lambda value: str(value)[:30])
def test_a_wrong_way_to_sample_is_told(
        client: FlaskClient, name: str, value: Any, rule: str) -> None:
    """By its whole path."""
    body = asked(sampling={name: value})
    assert problem(client, WHOLE, body) == (f"sampling.{name}", rule)


def test_the_first_problem_is_told(client: FlaskClient) -> None:
    """By path, a wrong type before any other."""
    body = asked(messages=[], sampling={"topP": 3, "temperature": "hot"})
    assert problem(client, WHOLE, body) == ("sampling.temperature", WRONG_TYPE)
    body = asked(sampling={"topP": 3, "temperature": 3})
    assert problem(client, WHOLE, body)[0] == "sampling.temperature"


@pytest.mark.parametrize("body", ["", "[]", "{", "null", '{"a":NaN}', '{"a":1,"a":2}'])
@pytest.mark.parametrize("path", [WHOLE, STREAM])
def test_a_body_that_is_no_object_is_told(client: FlaskClient, path: str, body: str) -> None:
    """As everywhere."""
    assert problem(client, path, body)[0] is None


def call_of(recorded: Recorded, path: str = WHOLE, **fields: Any) -> Call:
    """The call that a request becomes."""
    client, calls = recorded
    answer = client.post(path, data=asked(**fields), headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.data
    return calls.pop()


@pytest.mark.parametrize(("path", "stream"), [(WHOLE, False), (STREAM, True)])
def test_a_chat_is_what_the_engine_gets(recorded: Recorded, path: str, stream: bool) -> None:
    """Whatever the request says of a stream: the address decides."""
    call = call_of(recorded, f"{path}?x=1", stream=not stream, n=3)
    assert (call.method, call.target, call.accept) == ("POST", "/v1/chat/completions", "*/*")
    assert (call.model, call.choices, call.passing) == (MODEL, {}, Passing.SOUND)
    assert json.loads(call.body.raw) == {
        "model": MODEL, "messages": USER, "temperature": 0.7, "top_p": 0.9, "top_k": 50,
        "max_tokens": 200, "stream": stream}


def test_sampling_and_extension_fields_are_taken_together(recorded: Recorded) -> None:
    """What sampling says comes first."""
    call = call_of(recorded, sampling={"priority": "LOW"}, x_juno_priority="HIGH",
                   x_juno_session_id="s", x_juno_top_k=3)
    assert (call.priority, call.session) == (Priority.LOW, "s")
    assert json.loads(call.body.raw)["top_k"] == 3
    assert call_of(recorded, x_juno_priority="HIGH").priority is Priority.HIGH
    assert call_of(recorded).priority is Priority.NORMAL


@pytest.mark.parametrize("fields", [
    {"sampling": {"topK": 5.0, "maxTokens": 9.0}},
    {"sampling": {"maxTokens": 9e0}, "x_juno_top_k": 5.0}], ids=["sampling", "beside"])
@pytest.mark.parametrize("path", [WHOLE, STREAM])
def test_whole_numbers_reach_the_engine_as_such(
        recorded: Recorded, path: str, fields: dict[str, Any]) -> None:
    """Though they are written as 5.0: some engines take only a 5."""
    raw = call_of(recorded, path, **fields).body.raw
    assert b'"top_k":5,' in raw and b'"max_tokens":9,' in raw


@pytest.mark.parametrize("given", ["550e8400-e29b-41d4-a716-446655440000", "r 1", "北" * 256])
def test_an_answer_repeats_its_request(recorded: Recorded, given: str) -> None:
    """The id as it was given; the name of the model too."""
    answer = strict_json(recorded[0].post(WHOLE, data=asked(requestId=given)).data)
    assert (answer["requestId"], answer["modelId"]) == (given, MODEL)


def test_a_request_without_an_id_has_the_gateways(recorded: Recorded) -> None:
    """The one that the header tells, whoever made it."""
    for headers in ({}, {"X-Request-Id": "id-7"}):
        answer = recorded[0].post(WHOLE, data=asked(requestId=None), headers=headers)
        assert strict_json(answer.data)["requestId"] == answer.headers["X-Request-Id"]
    assert answer.headers["X-Request-Id"] == "id-7"


@pytest.mark.parametrize("fields", [{}, {"modelId": None}], ids=["absent", "null"])
@pytest.mark.parametrize("path", [WHOLE, STREAM])
def test_with_a_default_the_model_may_be_absent(
        build: Build, path: str, fields: dict[str, Any]) -> None:
    """The answer tells which model that is; a stream does not."""
    body = {"messages": USER, **fields}
    answer = build(default_model=MODEL.upper()).post(path, data=json.dumps(body))
    assert answer.status_code == 200
    if path == WHOLE:
        found = strict_json(answer.data)
        assert (found["modelId"], found["text"]) == (MODEL, "alpha heard: hi")


def test_where_none_is_loaded_the_client_is_told_to_come_back(build: Build) -> None:
    """A default that means "the one used last" needs a first use."""
    answer = build(default_model="loaded").post(WHOLE, data=json.dumps({"messages": USER}))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert strict_json(answer.data)["error"]["code"] == "service_unavailable"


@pytest.mark.parametrize("path", [WHOLE, STREAM])
def test_an_unknown_model_is_told_by_junos_name_of_the_field(
        client: FlaskClient, path: str) -> None:
    """A 404 like that of a chat."""
    answer = client.post(path, data=asked(modelId="nope"))
    error = strict_json(answer.data)["error"]
    assert (answer.status_code, error["code"], error["param"]) == (
        404, "model_not_found", "modelId")
    assert error["message"] == "the model 'nope' does not exist"


@pytest.mark.parametrize("path", [WHOLE, STREAM])
@pytest.mark.parametrize(("content", "model", "status", "code"), [
    ("status:500", MODEL, 502, "upstream_error"), ("hi", "down", 502, "engine_unavailable"),
    ("sleep:3000", MODEL, 504, "engine_timeout")])
def test_what_goes_wrong_at_an_engine_is_told(
        build: Build, path: str, content: str, model: str, status: int, code: str) -> None:
    """With its status, as long as nothing has been said."""
    body = asked(modelId=model, messages=[{"role": "user", "content": content}])
    answer = build(read_timeout=0.2).post(path, data=body)
    error = strict_json(answer.data)["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, None)


@pytest.mark.parametrize("path", [WHOLE, STREAM])
@pytest.mark.parametrize("status", [400, 429, 503])
def test_an_engines_own_error_passes(client: FlaskClient, path: str, status: int) -> None:
    """In its own shape, as on every endpoint under /v1."""
    body = asked(messages=[{"role": "user", "content": f"status:{status}"}])
    answer = client.post(path, data=body)
    assert answer.status_code == status
    assert strict_json(answer.data)["error"]["message"] == f"fake engine returned {status}"
