"""GET /v1/models: every model of the registry, one by one or all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from tests.fakes.registry_home import LLAMA, PULLED_AT, RegistryHome
from tests.fakes.strict_json import strict_json

META = (b'"context_length":4096,"max_model_len":4096,'
        b'"meta":{"n_ctx_train":4096,"size":%d,"ftype":"F32"},'
        b'"status":{"value":"unloaded"}' % len(LLAMA))
NAMES = ["example-org/Tiny-Coder-GGUF:F32", "foo", "hf.co/a/b:Q4_K_M", "a//b:x", "with space",
         "100%", "北/京:1", "a?b#c"]


def get(client: FlaskClient, path: str, status: int = 200) -> Any:
    """The JSON at a path."""
    answer = client.get(path)
    assert (answer.status_code, answer.content_type) == (status, "application/json")
    return strict_json(answer.data)


def model(name: str, created: int = 1790847000) -> dict[str, Any]:
    """The first four fields of the model object of that name."""
    return {"id": name, "object": "model", "created": created, "owned_by": "loop"}


def four(found: dict[str, Any]) -> dict[str, Any]:
    """The four fields that OpenAI's API has."""
    return dict(list(found.items())[:4])


def test_an_empty_registry_is_an_empty_list(client: FlaskClient) -> None:
    """Clients read a list in any case."""
    assert get(client, "/v1/models") == {"object": "list", "data": []}


def test_every_model_is_listed(client: FlaskClient, registry_home: RegistryHome) -> None:
    """Sorted by name, with the time of its pull, on one line."""
    registry_home.add("example-org/Tiny-Coder-GGUF:F32")
    registry_home.add("example-org/Tiny-Chat-GGUF:F32", pulledAt="2026-10-02T14:00:00Z")
    (registry_home.models / "example-org--Half-Pulled--Q4_0").mkdir()
    assert client.get("/v1/models").data == (
        b'{"object":"list","data":[{"id":"example-org/Tiny-Chat-GGUF:F32","object":"model",'
        b'"created":1790949600,"owned_by":"loop",%b},{"id":"example-org/Tiny-Coder-GGUF:F32",'
        b'"object":"model","created":1790847000,"owned_by":"loop",%b}]}' % (META, META))


@pytest.mark.parametrize("name", NAMES)
def test_a_listed_model_is_found(
        client: FlaskClient, registry_home: RegistryHome, name: str) -> None:
    """With slashes as they are and percent-encoded; the id is the listed one."""
    manifest = {"name": name, "files": [{"path": "m.gguf"}], "pulledAt": PULLED_AT}
    registry_home.write_manifest(registry_home.models / "x", json.dumps(manifest).encode())
    [listed] = get(client, "/v1/models")["data"]
    assert four(listed) == model(name)
    for path in (quote(name, safe="/:"), quote(name, safe="")):
        assert get(client, f"/v1/models/{path}") == listed


@pytest.mark.parametrize(("asked", "found"), [
    ("FOO", "foo"), ("foo:latest", "foo"), ("Foo:LATEST", "foo"), ("foo:1b", None),
    ("bar", None), ("BAR:1B", "bar:1b")])
def test_spellings_of_a_name_lead_to_it(client: FlaskClient, registry_home: RegistryHome,
                                        asked: str, found: str | None) -> None:
    """Case and the tag latest make no difference, and no tag is guessed."""
    for name in ("foo", "bar:1b"):
        registry_home.add(name)
    if found:
        assert four(get(client, f"/v1/models/{asked}")) == model(found)
    else:
        assert "id" not in get(client, f"/v1/models/{asked}", 404)


@pytest.mark.parametrize(("path", "name"), [
    ("nope", "nope"), ("a%20b", "a b"), ("org%2Fname%3Atag", "org/name:tag"),
    ("..%2F..%2Fetc%2Fpasswd", "../../etc/passwd"), ("../../etc/passwd", "../../etc/passwd"),
    ("a//b", "a//b"), ("%22%3Cb%3E", '"<b>'), ("nope/", "nope/"),
    ("%E5%8C%97", "北"), ("%00", "\0")])
def test_an_unknown_model_is_named(client: FlaskClient, registry_home: RegistryHome,
                                   path: str, name: str) -> None:
    """The error has the name as it was asked for; nothing outside the registry is read."""
    registry_home.add("foo")
    assert get(client, f"/v1/models/{path}", 404) == {"error": {
        "message": f"the model '{name}' does not exist", "type": "invalid_request_error",
        "param": "model", "code": "model_not_found"}}


def test_models_come_and_go(client: FlaskClient, registry_home: RegistryHome) -> None:
    """A pull or a removal shows at the next call."""
    for present in (False, True, False):
        if present:
            registry_home.add("foo")
        elif registry_home.directory("foo").exists():
            registry_home.remove("foo")
        assert [m["id"] for m in get(client, "/v1/models")["data"]] == ["foo"] * present
        get(client, "/v1/models/foo", 200 if present else 404)


def test_one_bad_entry_hides_no_other(client: FlaskClient, registry_home: RegistryHome) -> None:
    """Nor does a directory whose name is no text; the answer is valid UTF-8."""
    registry_home.add("foo")
    registry_home.write_manifest(registry_home.models / "bad", b"[]")
    odd = Path(os.fsdecode(bytes(registry_home.models) + b"/\xff"))
    registry_home.add("bar").rename(odd)
    assert [m["id"] for m in get(client, "/v1/models")["data"]] == ["bar", "foo"]
    assert four(get(client, "/v1/models/bar")) == model("bar")


def test_head_has_no_body(client: FlaskClient, registry_home: RegistryHome) -> None:
    """Its headers are those of the GET."""
    registry_home.add("foo")
    for path in ("/v1/models", "/v1/models/foo"):
        answer = client.head(path)
        assert (answer.status_code, answer.data) == (200, b"")
        assert answer.content_length == len(client.get(path).data)
