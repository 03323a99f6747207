"""Models are made of other ones and of uploaded files, and what is added to them is applied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.hub import FakeHub
from tests.fakes.model_files import TALK
from tests.fakes.raw_engine import RawEngine
from tests.fakes.whole_gguf import OTHER, PARTS, PROJECTOR, SMALL
from tests.server.calls import SHOW, get, ollama_error, post
from tests.server.ollama.asking import asked
from tests.server.ollama.engine_answers import V1_CHAT
from tests.server.ollama.registry.asking import Registered, digest_of, events_of

EARLIER = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "A pirate."}]
ADDED: dict[str, Any] = {
    "system": "Be a pirate.",
    "parameters": {"temperature": 0.25, "stop": ["Arr", "Ho"], "top_k": 7},
    "messages": EARLIER, "license": ["MIT", "more"]}
QUESTION = {"role": "user", "content": "hi"}


@pytest.fixture
def pirate(served: Registered) -> str:
    """The name of a model that was made of another one."""
    served.put("org/m:Q8_0", SMALL)
    assert served.create("pirate", **{"from": "ORG/m:q8_0", **ADDED}).status == 200
    return "pirate"


def test_the_events(served: Registered) -> None:
    """Are Ollama's; the files are shared."""
    digest = served.put("org/m:Q8_0", SMALL)
    answer = served.create("mine", **{"from": "org/m:Q8_0", "system": "x"})
    assert (answer.status, answer.header("Content-Type")) == (200, "application/x-ndjson")
    assert events_of(answer.body) == [
        {"status": f"using existing layer {digest}"}, {"status": "writing manifest"},
        {"status": "success"}]
    answer = served.create("mine:2", **{"from": "mine", "stream": False})
    assert answer.json() == {"status": "success"}
    assert served.names() == ["mine:2", "mine:latest", "org/m:Q8_0"] and len(served.blobs()) == 1
    assert served.entry("mine:2").modelfile == {"from": "mine:latest", "system": "x"}


def test_what_is_added_is_shown(served: Registered, pirate: str) -> None:
    """In the fields and in the Modelfile; the digest is another model's."""
    shown = post(served.url, SHOW, {"model": pirate}).json()
    assert (shown["system"], shown["license"]) == ("Be a pirate.", "MIT\nmore")
    assert shown["messages"] == EARLIER
    assert shown["details"]["parent_model"] == "org/m:Q8_0"
    lines = shown["parameters"].splitlines()
    assert {"temperature                    0.25", 'stop                           "Arr"',
            'stop                           "Ho"', "top_k                          7"} <= set(lines)
    for line in ("SYSTEM Be a pirate.", "PARAMETER stop Ho", "MESSAGE assistant A pirate."):
        assert line in shown["modelfile"].splitlines()
    tags = post(served.url, SHOW, {"model": "org/m:Q8_0"}).json()
    assert tags["system"] == "" and "messages" not in tags
    models = get(served.url, "/api/tags").json()["models"]
    assert len({model["digest"] for model in models}) == len(models) == 2


CHATS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"messages": [QUESTION]}, [{"role": "system", "content": "Be a pirate."}, *EARLIER, QUESTION]),
    ({"messages": [{"role": "System", "content": "No."}, QUESTION]},
     [*EARLIER, {"role": "system", "content": "No."}, QUESTION]),
]


@pytest.mark.parametrize(("fields", "sent"), CHATS)
def test_a_chat(served: Registered, engine: RawEngine, pirate: str, fields: dict[str, Any],
                sent: list[dict[str, Any]]) -> None:
    """Has the system text, unless it begins with one of its own, and the messages before its."""
    options = {"temperature": 0.75, "top_k": None}
    answer = post(served.url, "/api/chat", {"model": pirate, "options": options, **fields})
    assert answer.status == 200
    [got] = asked(engine)
    assert got["model"] == "pirate:latest" and got["messages"] == sent
    assert (got["temperature"], got["top_k"], got["stop"]) == (0.75, 7, ["Arr", "Ho"])


PROMPTS = [({}, "Be a pirate."), ({"system": "No."}, "No."), ({"system": ""}, "Be a pirate.")]


@pytest.mark.parametrize(("fields", "system"), PROMPTS)
def test_a_prompt(served: Registered, engine: RawEngine, pirate: str, fields: dict[str, Any],
                  system: str) -> None:
    """Comes after all of it; its own system text replaces the model's."""
    answer = post(served.url, "/api/generate", {"model": pirate, "prompt": "hi", **fields})
    assert answer.status == 200
    got = asked(engine)[0]
    assert got["messages"] == [{"role": "system", "content": system}, *EARLIER, QUESTION]
    assert (got["temperature"], got["stop"]) == (0.25, ["Arr", "Ho"])


def test_a_raw_prompt(served: Registered, engine: RawEngine, pirate: str) -> None:
    """Is as it is; only the parameters count."""
    fields = {"model": pirate, "prompt": "hi", "raw": True, "messages": [QUESTION]}
    assert post(served.url, "/api/generate", fields).status == 200
    [got] = asked(engine, "/completion")
    assert got["prompt"] == "hi" and got["temperature"] == 0.25


TEMPLATE = "{{ if .System }}S:{{ .System }} {{ end }}U:{{ .Prompt }} A:{{ .Response }}."


def test_a_template(served: Registered, engine: RawEngine) -> None:
    """Makes the text of chats and prompts, turn by turn, in place of the file's own."""
    served.put("m", SMALL)
    served.create("t", **{"from": "m", "system": "s", "template": TEMPLATE, "messages": EARLIER})
    assert post(served.url, "/api/chat", {"model": "t", "messages": [QUESTION]}).status == 200
    assert post(served.url, "/api/generate", {"model": "t", "prompt": "hi"}).status == 200
    first, second = asked(engine, "/completion")
    assert first["prompt"] == second["prompt"] == "S:s U:Who? A:A pirate..U:hi A:"
    assert asked(engine, V1_CHAT) == []
    shown = post(served.url, SHOW, {"model": "t"}).json()
    assert shown["template"] == TEMPLATE and shown["capabilities"] == ["completion"]
    refused = post(served.url, "/api/chat", {"model": "t", "messages": [
        {"role": "tool", "content": "x"}]})
    assert refused.status == 400 and "role must be" in ollama_error(refused)


def test_the_template_of_the_base_adds_nothing(served: Registered) -> None:
    """Clients send what they were shown."""
    served.put("m", SMALL)
    post(served.url, "/api/chat", {"model": "m", "messages": [QUESTION]})
    shown = post(served.url, SHOW, {"model": "m"}).json()
    assert shown["template"] == TALK
    assert served.create("c", **{"from": "m", "template": shown["template"]}).status == 200
    assert served.entry("c").modelfile == {"from": "m"}


def test_a_base_that_is_not_there_is_pulled(hub: FakeHub, served: Registered) -> None:
    """Its events come first."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    events = events_of(served.create("mine", **{"from": "hf.co/org/m", "system": "x"}).body)
    assert [event["status"] for event in events][0] == "pulling manifest"
    assert [event["status"] for event in events].count("success") == 1
    assert served.names() == ["hf.co/org/m:latest", "mine:latest"]
    last = events_of(served.create("x", **{"from": "org/nope"}).body)[-1]
    assert last["error"].startswith("pull model manifest: file does not exist")


def test_files_that_were_uploaded(served: Registered) -> None:
    """All parts, and the projector; the blobs are shared with other models."""
    files = {**PARTS, "mmproj-F16.gguf": PROJECTOR}
    for data in files.values():
        assert served.upload(data).status == 201
    digests = {path: digest_of(data) for path, data in files.items()}
    events = events_of(served.create("mine", files=digests, system="x").body)
    assert events[0] == {"status": "parsing GGUF"} and events[-1] == {"status": "success"}
    entry = served.entry("mine")
    assert [file.path for file in entry.files] == [*PARTS, "mmproj-F16.gguf"]
    assert entry.modelfile == {"system": "x"} and entry.quant == "Q8_0"


def test_a_model_is_replaced(served: Registered) -> None:
    """By one of other files; blobs that nobody needs go."""
    served.put("mine", SMALL)
    served.upload(OTHER)
    assert served.create("MINE", files={"o.gguf": digest_of(OTHER)}).status == 200
    assert served.names() == ["mine:latest"] and len(served.blobs()) == 1
    assert served.entry("mine").first_file.read_bytes() == OTHER


BLOB = {"a.gguf": digest_of(SMALL)}
REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "neither 'from' or 'files' was specified"),
    ({"from": "m", "model": ""}, 400, "invalid model name"),
    ({"from": "m", "model": "../x"}, 400, "invalid model name: a model cannot be called"),
    ({"from": "m", "model": "nick"}, 400, "it is another name of a model"),
    ({"from": "m", "quantize": "q4_K_M"}, 400, "models are not quantized here"),
    ({"from": "m", "adapters": {"a.gguf": "sha256:x"}}, 400, "adapters are not supported"),
    ({"files": {"model.safetensors": digest_of(SMALL)}}, 400, "upload a GGUF file"),
    ({"files": {"a.gguf": "sha256:abc"}}, 400, "is no SHA-256 digest"),
    ({"files": {"a.gguf": digest_of(OTHER)}}, 404, "upload it first"),
    ({"files": {"../a.gguf": digest_of(SMALL)}}, 400, "cannot be called"),
    ({"files": {"/a.gguf": digest_of(SMALL)}}, 400, "cannot be called"),
    ({"files": {"a.gguf": 1}}, 400, "invalid digest format"),
    ({"files": {"a.gguf": digest_of(b"no gguf")}}, 400, "a.gguf"),
    ({"from": "m", "template": "{{ range .Messages }}{{ .Content }}{{ end }}"}, 400,
     'template: the action "range .Messages" is not supported'),
    ({"from": "m", "parameters": {"temperature": "hot"}}, 400, "temperature"),
    ({"from": "m", "parameters": []}, 400, "parameters must be an object"),
    ({"from": "m", "messages": [{"role": "tool", "content": "x"}]}, 400, "messages[0].role"),
    ({"from": "m", "system": 1}, 400, "system must be a text"),
    ({"from": "m", "license": [1]}, 400, "license[0] must be a text"),
]


@pytest.mark.parametrize(("fields", "status", "words"), REFUSED)
def test_models_that_cannot_be_made(
        served: Registered, fields: dict[str, Any], status: int, words: str) -> None:
    """Are refused before the answer begins, and nothing changes."""
    served.put("m", SMALL)
    served.upload(b"no gguf")
    answer = served.create(**{"name": "", "model": "x", **fields})
    assert answer.status == status and words in ollama_error(answer)
    assert served.names() == ["m:latest"]
