"""What is checked of a chat, in which words, and what is not checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.api.conftest import MODEL, Build
from tests.fakes.strict_json import strict_json

CHAT = "/v1/chat/completions"
USER = [{"role": "user", "content": "x"}]
WRONG_TYPE = "has the wrong JSON type"
BLANK = "must not be blank"
EMPTY = "must not be empty"
ROLES = 'must match "system|developer|user|assistant|tool"'
TOO_HOT = "must be less than or equal to 2.0"
TOO_COLD = "must be greater than or equal to 0.0"
TOO_FEW = "must be greater than 0"


def problem(client: FlaskClient, body: dict[str, Any]) -> tuple[str, str]:
    """The param and the rule that the chat breaks, the answer checked for its shape."""
    answer = client.post(CHAT, data=json.dumps(body))
    assert (answer.status_code, answer.content_type) == (400, "application/json")
    error = strict_json(answer.data)["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert (error["type"], error["code"]) == ("invalid_request_error", None)
    start = f"'{error['param']}' "
    assert error["message"].startswith(start)
    return error["param"], error["message"][len(start):]


def messages(*found: Any) -> dict[str, Any]:
    """A chat with these messages."""
    return {"model": MODEL, "messages": list(found)}


def with_fields(**fields: Any) -> dict[str, Any]:
    """A good chat with these fields on top."""
    return {"model": MODEL, "messages": USER, **fields}


LESSON = [
    ({"messages": USER}, "model", BLANK),
    ({"model": MODEL, "messages": []}, "messages", EMPTY),
    (messages({"role": "robot", "content": "x"}), "messages[0].role", ROLES),
    (with_fields(temperature=3), "temperature", TOO_HOT),
    (with_fields(max_tokens=0), "max_tokens", TOO_FEW),
    (with_fields(messages="hi"), "messages", WRONG_TYPE),
]
VALUES = [
    *[(with_fields(model=value), "model", BLANK) for value in (None, "", "  ", "\t\n")],
    *[(with_fields(model=value), "model", WRONG_TYPE) for value in (5, True, ["m"], {}, 1.5)],
    ({"model": MODEL}, "messages", EMPTY),
    (with_fields(messages=None), "messages", EMPTY),
    *[(with_fields(messages=value), "messages", WRONG_TYPE) for value in ({}, 5, True, "")],
    *[(with_fields(temperature=value), "temperature", TOO_HOT) for value in (2.0001, 3, 1e300)],
    *[(with_fields(temperature=value), "temperature", TOO_COLD) for value in (-0.0001, -1)],
    *[(with_fields(temperature=value), "temperature", WRONG_TYPE)
      for value in ("1", True, [1], {})],
    *[(with_fields(max_tokens=value), "max_tokens", TOO_FEW) for value in (0, -1, -5.0, 0.0)],
    *[(with_fields(max_tokens=value), "max_tokens", WRONG_TYPE)
      for value in ("5", 1.5, True, [5], {})],
    *[(with_fields(stream=value), "stream", WRONG_TYPE) for value in ("true", 1, 0, [], {})],
]
IN_MESSAGES = [
    *[(messages(value), "messages[0]", WRONG_TYPE) for value in (None, 5, "hi", True, [])],
    *[(messages({"role": value}), "messages[0].role", WRONG_TYPE) for value in (5, True, [], {})],
    *[(messages({"role": value}), "messages[0].role", BLANK) for value in (None, "", " ")],
    (messages({}), "messages[0].role", BLANK),
    (messages({"content": "x"}), "messages[0].role", BLANK),
    *[(messages({"role": value}), "messages[0].role", ROLES)
      for value in ("robot", "User", "USER", " user", "function", "user\n")],
    (messages(*USER, *USER, {"role": "robot"}), "messages[2].role", ROLES),
    (messages(*USER, 5), "messages[1]", WRONG_TYPE),
]
FIRST = [
    # By the property path, as text.
    ({}, "messages", EMPTY),
    (with_fields(temperature=3, max_tokens=0), "max_tokens", TOO_FEW),
    (with_fields(temperature=3, messages=[]), "messages", EMPTY),
    ({"temperature": 3, "messages": USER}, "model", BLANK),
    (messages({"role": "a"}, {"role": "b"}), "messages[0].role", ROLES),
    (messages(*USER * 2, {}, *USER * 7, {}), "messages[10].role", BLANK),
    ({"messages": [{"role": "a"}]}, "messages[0].role", ROLES),
    # Wrong types before rules, wherever they stand.
    (with_fields(max_tokens=0, temperature="hot"), "temperature", WRONG_TYPE),
    ({"messages": [], "stream": 1}, "stream", WRONG_TYPE),
    (messages({"role": "a"}, {"role": 5}), "messages[1].role", WRONG_TYPE),
    ({"messages": [{"role": "a"}, 5]}, "messages[1]", WRONG_TYPE),
    (with_fields(model=5, temperature="hot", stream=1), "model", WRONG_TYPE),
    # A good stream flag is no problem.
    (with_fields(stream=True, temperature=3), "temperature", TOO_HOT),
    ({"messages": USER, "stream": True}, "model", BLANK),
]


@pytest.mark.parametrize(
    ("body", "param", "rule"), [*LESSON, *VALUES, *IN_MESSAGES, *FIRST],
    ids=lambda value: str(value)[:40] if not isinstance(value, dict) else None)
def test_the_first_problem_is_told(
        client: FlaskClient, body: dict[str, Any], param: str, rule: str) -> None:
    """Its path is the param, its rule in words that do not change."""
    assert problem(client, body) == (param, rule)


def test_a_required_model_is_told_before_an_unknown_one(client: FlaskClient) -> None:
    """A body is checked whole before its model is looked for."""
    assert problem(client, {"model": "nope", "messages": []}) == ("messages", EMPTY)


ACCEPTED_MESSAGES = {
    "developer": {"role": "developer", "content": "be brief"},
    "system": {"role": "system", "content": "be brief"},
    "parts": {"role": "user", "content": [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]},
    "unknown_part": {"role": "user", "content": [{"type": "bogus"}]},
    "tool_calls": {"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    "no_content": {"role": "assistant"},
    "null_content": {"role": "assistant", "content": None},
    "empty_text": {"role": "assistant", "content": ""},
    "empty_user_text": {"role": "user", "content": ""},
    "number": {"role": "user", "content": 5},
    "tool": {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "42"}]},
    "unknown_keys": {"role": "user", "content": "hi", "name": 5, "x": {"role": "robot"}, "": 1},
}
ACCEPTED_FIELDS = {
    "nulls": {"temperature": None, "max_tokens": None, "stream": None},
    "lowest": {"temperature": 0, "max_tokens": 1, "stream": False},
    "highest": {"temperature": 2, "max_tokens": 2**63},
    "fractions": {"temperature": 0.7, "max_tokens": 5.0},
    "minus_zero": {"temperature": -0.0},
    "extensions": {"top_k": 40, "cache_prompt": True, "seed": 9007199254740993, "x": None},
    "not_checked": {"n": "many", "stop": 5, "tools": "x", "top_p": 17, "logit_bias": []},
    "format": {"response_format": {"type": "bogus"}},
}


def received(client: FlaskClient, body: dict[str, Any]) -> list[str]:
    """The fields that reached the engine."""
    answer = client.post(CHAT, data=json.dumps(body))
    assert answer.status_code == 200, answer.data
    found: list[str] = strict_json(answer.data)["received_fields"]
    return found


@pytest.mark.parametrize(
    "found", [[message] for message in ACCEPTED_MESSAGES.values()]
    + [list(ACCEPTED_MESSAGES.values())], ids=[*ACCEPTED_MESSAGES, "all"])
def test_every_message_that_openai_takes_is_taken(
        client: FlaskClient, found: list[dict[str, Any]]) -> None:
    """Contents are the engine's business: missing, null, empty, parts of any kind."""
    assert received(client, messages(*found)) == ["model", "messages"]


@pytest.mark.parametrize("fields", ACCEPTED_FIELDS.values(), ids=ACCEPTED_FIELDS)
def test_every_other_field_is_the_engines_business(
        client: FlaskClient, fields: dict[str, Any]) -> None:
    """Null counts as absent, limits are included, and what is not known is not looked at."""
    assert received(client, with_fields(**fields)) == ["model", "messages", *fields]


def test_a_long_chat_is_taken(client: FlaskClient) -> None:
    """A thousand messages are no problem."""
    assert received(client, messages(*USER * 1000)) == ["model", "messages"]


@pytest.mark.parametrize("body", [{"messages": USER}, {"model": None, "messages": USER}],
                         ids=["absent", "null"])
def test_with_a_default_the_model_may_be_absent(build: Build, body: dict[str, Any]) -> None:
    """The engine is told which model that is."""
    assert set(received(build(default_model=MODEL), body)) == {"model", "messages"}


@pytest.mark.parametrize(("model", "rule"), [("", BLANK), (" ", BLANK), (5, WRONG_TYPE)])
def test_with_a_default_a_given_model_is_still_checked(
        build: Build, model: Any, rule: str) -> None:
    """A name that is given must be one."""
    assert problem(build(default_model=MODEL), with_fields(model=model)) == ("model", rule)


def test_where_none_is_loaded_the_client_is_told_to_come_back(build: Build) -> None:
    """A default that means "the one used last" needs a first use."""
    client = build(default_model="loaded")
    answer = client.post(CHAT, data=json.dumps({"messages": USER}))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert strict_json(answer.data)["error"]["message"] == "no model is currently loaded"
    assert received(client, with_fields()) == ["model", "messages"]
    assert received(client, {"messages": USER}) == ["messages", "model"]
