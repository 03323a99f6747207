"""The Ollama API: lists, one model's facts, what counts as loaded."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.api.conftest import MODEL, SetClock
from tests.fakes.gguf_writer import LITTLE, Type, gguf
from tests.fakes.registry_home import LLAMA, PULLED_AT, RegistryHome
from tests.fakes.strict_json import strict_json

CHAT = "/v1/chat/completions"
SHA = "5239405616616846448e0fd1b11e1807bc5693a20f9f04e8fd57853254b1e7b7"
SMALL = gguf([
    ("general.architecture", Type.STRING, "llama"), ("general.size_label", Type.STRING, "7B"),
    ("llama.context_length", Type.UINT32, 4096)])


@pytest.fixture
def pulled(registry_home: RegistryHome) -> RegistryHome:
    """A registry of one model whose file has three keys."""
    file = {"path": "model.gguf", "size": 4096, "sha256": SHA}
    registry_home.add(MODEL, SMALL, files=[file])
    return registry_home


def get(client: FlaskClient, path: str) -> Any:
    """The JSON at a path."""
    answer = client.get(path)
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    return strict_json(answer.data)


def show(client: FlaskClient, **fields: Any) -> Any:
    """What POST /api/show says."""
    answer = client.post("/api/show", data=json.dumps(fields))
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    return strict_json(answer.data)


def chat(client: FlaskClient, model: str = MODEL, content: str = "hi") -> int:
    """The status of a chat with one message."""
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    return client.post(CHAT, data=json.dumps(body)).status_code


DETAILS = {"parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
           "parameter_size": "7B", "quantization_level": "F32", "context_length": 4096}
TAG = {"name": MODEL, "model": MODEL, "modified_at": PULLED_AT, "size": 4096, "digest": SHA,
       "details": DETAILS, "capabilities": ["completion"]}


LESSON = ["details", "model_info", "modified_at"]


def test_ollama_endpoints(client: FlaskClient, pulled: RegistryHome) -> None:
    """Tags and show tell the model's facts; ps has it after one chat, for five minutes."""
    assert get(client, "/api/tags") == {"models": [TAG]}
    shown = show(client, model=MODEL)
    assert {key: shown[key] for key in LESSON} == {
        "details": DETAILS, "modified_at": PULLED_AT, "model_info": {
            "general.architecture": "llama", "general.size_label": "7B",
            "llama.context_length": 4096}}
    assert get(client, "/api/ps") == {"models": []}
    assert chat(client) == 200
    assert get(client, "/api/ps") == {"models": [{
        "name": MODEL, "model": MODEL, "size": 4096, "digest": SHA, "details": DETAILS,
        "expires_at": "2026-10-03T12:05:00Z", "size_vram": 0, "context_length": 4096}]}


def test_fields_come_in_ollamas_order(client: FlaskClient, pulled: RegistryHome) -> None:
    """On one line, as Ollama writes them."""
    [tag] = get(client, "/api/tags")["models"]
    assert list(tag) == list(TAG) and list(tag["details"]) == list(DETAILS)
    assert list(show(client, model=MODEL)) == [
        *LESSON, "license", "modelfile", "parameters", "template", "system", "capabilities"]
    assert b"\n" not in client.get("/api/tags").data


def test_a_model_expires(client: FlaskClient, pulled: RegistryHome, clock: SetClock) -> None:
    """Each use counts anew, and after the keep-alive time the list is empty."""
    for _ in range(2):
        clock.move(minutes=4)
        assert chat(client) == 200
    [running] = get(client, "/api/ps")["models"]
    assert running["expires_at"] == "2026-10-03T12:13:00Z"
    clock.move(minutes=4, seconds=59.5)
    assert len(get(client, "/api/ps")["models"]) == 1
    clock.move(seconds=0.5)
    assert get(client, "/api/ps") == {"models": []}


def test_the_time_has_its_fraction(client: FlaskClient, pulled: RegistryHome,
                                   clock: SetClock) -> None:
    """A clock between two seconds gives a time that clients read too."""
    clock.move(microseconds=250)
    assert chat(client) == 200
    [running] = get(client, "/api/ps")["models"]
    assert running["expires_at"] == "2026-10-03T12:05:00.000250Z"


@pytest.mark.parametrize("content", ["status:400", "status:500", "status:503"])
def test_a_failed_chat_loads_nothing(
        client: FlaskClient, pulled: RegistryHome, content: str) -> None:
    """Only a success counts as a use."""
    assert chat(client, content=content) >= 400
    assert chat(client, "down") == 502
    assert get(client, "/api/ps") == {"models": []}


@pytest.mark.parametrize("spellings", [[MODEL, MODEL.upper()], [MODEL.lower(), MODEL]])
def test_a_model_is_loaded_once(
        client: FlaskClient, pulled: RegistryHome, spellings: list[str]) -> None:
    """Whatever spellings it was asked by."""
    assert [chat(client, spelling) for spelling in spellings] == [200, 200]
    assert [m["name"] for m in get(client, "/api/ps")["models"]] == [MODEL]


def test_a_loaded_model_that_is_removed_is_not_listed(
        client: FlaskClient, pulled: RegistryHome) -> None:
    """Its facts are gone with it; it may come back."""
    assert chat(client) == 200
    pulled.remove(MODEL)
    assert get(client, "/api/ps") == {"models": []}
    pulled.add(MODEL)
    assert [m["name"] for m in get(client, "/api/ps")["models"]] == [MODEL]


@pytest.mark.parametrize(("name", "listed"), [
    ("foo", "foo:latest"), ("bar:1b", "bar:1b"), ("org/x", "org/x:latest"),
    ("hf.co/a/b:Q4_K_M", "hf.co/a/b:Q4_K_M")])
def test_a_listed_name_can_be_asked_for(
        client: FlaskClient, registry_home: RegistryHome, name: str, listed: str) -> None:
    """Ollama's clients show a tag with every name, and ask for exactly that."""
    registry_home.add(name)
    [tag] = get(client, "/api/tags")["models"]
    assert (tag["name"], tag["model"]) == (listed, listed)
    for spelling in (listed, name, listed.upper()):
        assert show(client, model=spelling)["model_info"]["llama.context_length"] == 4096
        assert client.get(f"/v1/models/{spelling}").status_code == 200


@pytest.mark.parametrize("fields", [
    {"model": MODEL}, {"name": MODEL}, {"model": MODEL, "name": "nope"},
    {"model": None, "name": MODEL}, {"model": MODEL, "verbose": False, "options": {"x": 1}}])
def test_show_takes_the_older_word_too(
        client: FlaskClient, pulled: RegistryHome, fields: dict[str, Any]) -> None:
    """``model`` counts before ``name``; other fields are not looked at."""
    assert show(client, **fields)["details"] == DETAILS


@pytest.mark.parametrize(("body", "status", "text"), [
    (b'{"model":"nope"}', 404, "model 'nope' not found"),
    (b'{"name":"../../etc/passwd"}', 404, "model '../../etc/passwd' not found"),
    (b"{}", 400, "model is required"),
    (b'{"model":""}', 400, "model is required"),
    (b'{"model":"  "}', 400, "model is required"),
    (b'{"model":null}', 400, "model is required"),
    (b'{"model":5}', 400, "'model' has the wrong JSON type"),
    (b'{"model":"m","name":[]}', 400, "'name' has the wrong JSON type"),
    (b"", 400, "missing request body"),
    (b"{not json", 400, "the request body is not valid JSON"),
    (b"[]", 400, "the request body is not a JSON object"),
    (b'{"model":"a","model":"b"}', 400,
     "the request body is not valid JSON: the key 'model' is repeated"),
])
def test_show_refuses_in_ollamas_shape(
        client: FlaskClient, body: bytes, status: int, text: str) -> None:
    """One field, a text."""
    answer = client.post("/api/show", data=body)
    assert (answer.status_code, answer.content_type) == (status, "application/json")
    assert strict_json(answer.data) == {"error": text}


@pytest.mark.parametrize("data", [b"", b"GGUF", LITTLE.header(1), gguf([])],
                         ids=["empty", "magic_only", "cut", "no_keys"])
def test_a_model_without_metadata_is_shown(
        client: FlaskClient, registry_home: RegistryHome, data: bytes) -> None:
    """All fields are there, with values that clients can read."""
    registry_home.add("m:Q4", data)
    registry_home.add("good:Q4")
    details = {**DETAILS, "family": "unknown", "families": ["unknown"], "parameter_size": "",
               "quantization_level": "Q4"}
    del details["context_length"]
    found = {tag["name"]: tag["details"] for tag in get(client, "/api/tags")["models"]}
    assert found == {"good:Q4": {**DETAILS, "parameter_size": "", "quantization_level": "Q4"},
                     "m:Q4": details}
    shown = show(client, model="m:Q4")
    assert [shown[key] for key in LESSON] == [details, {}, PULLED_AT]


def test_a_model_whose_file_is_gone_is_listed(
        client: FlaskClient, registry_home: RegistryHome) -> None:
    """The manifest says what it is."""
    (registry_home.add("m") / "model.gguf").unlink()
    [tag] = get(client, "/api/tags")["models"]
    assert (tag["size"], tag["details"]["family"]) == (len(LLAMA), "unknown")


def test_what_json_cannot_hold_is_null(client: FlaskClient, registry_home: RegistryHome) -> None:
    """Strict readers can read the rest, and large integers are exact."""
    registry_home.add("m", gguf([
        ("nan", Type.FLOAT32, math.nan), ("inf", Type.FLOAT64, math.inf),
        ("big", Type.UINT64, 2**64 - 1), ("text", Type.STRING, "北😀")]))
    assert show(client, model="m")["model_info"] == {
        "nan": None, "inf": None, "big": 18446744073709551615, "text": "北😀"}


def test_a_split_model_is_one(client: FlaskClient, registry_home: RegistryHome) -> None:
    """Its size is that of its parts, its facts and its digest are those of part 1."""
    parts = [gguf([("general.architecture", Type.STRING, f"part{n}")]) for n in (1, 2, 3)]
    registry_home.add_files("x", {f"x-0000{n}-of-00003.gguf": p for n, p in enumerate(parts, 1)})
    [tag] = get(client, "/api/tags")["models"]
    assert tag["size"] == sum(map(len, parts))
    assert tag["details"]["family"] == "part1"


def test_odd_directories_are_listed_as_json(
        client: FlaskClient, registry_home: RegistryHome) -> None:
    """Neither a name of bytes nor a circle of links nor a pipe disturbs the list."""
    registry_home.add("a").rename(Path(os.fsdecode(bytes(registry_home.models) + b"/\xff")))
    (registry_home.models / "x").symlink_to("x")
    (registry_home.models / "up").symlink_to("..")
    (registry_home.models / "pipe").mkdir()
    os.mkfifo(registry_home.models / "pipe" / "manifest.json")
    assert [tag["name"] for tag in get(client, "/api/tags")["models"]] == ["a:latest"]


def test_the_server_is_known_as_ollama(client: FlaskClient) -> None:
    """By one line of text and by a version of numbers."""
    answer = client.get("/")
    assert (answer.data, answer.mimetype) == (b"Ollama is running", "text/plain")
    assert (client.head("/").status_code, client.head("/").data) == (200, b"")
    version = get(client, "/api/version")
    assert list(version) == ["version"]
    assert all(part.isdecimal() for part in version["version"].split("."))
    assert client.head("/api/tags").status_code == 200
