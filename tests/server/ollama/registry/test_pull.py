"""Models come from the hub by POST /api/pull."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.hub import FakeHub, Fault
from tests.fakes.whole_gguf import LARGE, OTHER, PROJECTOR, SMALL
from tests.server.calls import ollama_error
from tests.server.ollama.registry.asking import Registered, digest_of, events_of

STEPS = ["pulling manifest", "verifying sha256 digest", "writing manifest", "success"]
FILES = {"m-Q4_K_M.gguf": LARGE, "m-Q8_0.gguf": SMALL, "mmproj-F16.gguf": PROJECTOR}


def test_the_events_are_ollamas(hub: FakeHub, served: Registered) -> None:
    """In its order: for each file its first digits, digest, size, and what has come of it."""
    hub.add("org/m", FILES)
    answer = served.pull("hf.co/org/m:Q4_K_M")
    assert (answer.status, answer.header("Content-Type")) == (200, "application/x-ndjson")
    events = events_of(answer.body)
    assert [event["status"] for event in events if "digest" not in event] == STEPS
    for data in (LARGE, PROJECTOR):
        digest = digest_of(data)
        layer = [event for event in events if event.get("digest") == digest]
        assert {event["status"] for event in layer} == {f"pulling {digest[7:19]}"}
        assert {event["total"] for event in layer} == {len(data)}
        done = [event.get("completed", 0) for event in layer]
        assert done == sorted(done) and done[-1] == len(data)
    assert len(events) < 40


@pytest.mark.parametrize(("asked", "listed", "data"), [
    ("hf.co/org/m", "hf.co/org/m:latest", LARGE),
    ("hf.co/Org/M:q8_0", "hf.co/Org/M:q8_0", SMALL),
    ("huggingface.co/org/m:Q8_0", "huggingface.co/org/m:Q8_0", SMALL),
    ("https://huggingface.co/org/m:Q8_0", "huggingface.co/org/m:Q8_0", SMALL),
    ("org/m", "org/m:latest", LARGE), ("org/m:latest", "org/m:latest", LARGE),
    ("org/m:Q8_0", "org/m:Q8_0", SMALL)])
def test_a_model_is_found_by_the_name_that_was_pulled(
        hub: FakeHub, served: Registered, asked: str, listed: str, data: bytes) -> None:
    """It is listed so, with a tag; a second pull asks the hub nothing."""
    hub.add("org/m", FILES)
    assert events_of(served.pull(asked).body)[-1] == {"status": "success"}
    assert served.names() == [listed]
    assert served.entry(listed).first_file.read_bytes() == data
    asked_before = len(hub.requests)
    again = served.pull(asked)
    assert again.body == b'{"status":"pulling manifest"}\n{"status":"success"}\n'
    assert len(hub.requests) == asked_before


def test_the_end_alone(hub: FakeHub, served: Registered) -> None:
    """With "stream": false."""
    hub.add("org/m", FILES)
    answer = served.pull("org/m:Q8_0", stream=False)
    assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
    assert answer.json() == {"status": "success"} and served.names() == ["org/m:Q8_0"]


def test_a_model_that_lost_a_file_is_brought_anew(hub: FakeHub, served: Registered) -> None:
    """It is listed, but no engine could load it."""
    hub.add("org/m", FILES)
    served.pull("org/m:Q8_0")
    (served.home / "blobs" / digest_of(SMALL).replace(":", "-")).unlink()
    assert events_of(served.pull("org/m:Q8_0").body)[-1] == {"status": "success"}
    assert served.has_blob(SMALL)


MISSING = "pull model manifest: file does not exist"
REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("org/nope", {}, 500, MISSING), ("org/m:Q2_K", {}, 500, f"{MISSING}: org/m has no 'Q2_K'"),
    ("llama3.2", {}, 500, MISSING),
    ("org/m", {"status": 401}, 502, "set HF_TOKEN to a token that may read it"),
    ("org/m", {"status": 401, "headers": {"X-Error-Code": "GatedRepo"}}, 502, "accept"),
    ("org/m", {"status": 403}, 502, "refuses org/m"),
    ("org/m", {"status": 429, "headers": {"Retry-After": "600"}}, 503, "try again in 600 s"),
]


@pytest.mark.parametrize(("name", "fault", "status", "words"), REFUSED)
def test_what_the_hub_refuses(hub: FakeHub, served: Registered, name: str, fault: dict[str, Any],
                              status: int, words: str) -> None:
    """Is an event, as the answer has begun by then; without a stream it is a status."""
    hub.add("org/m", FILES)
    hub.faults = [Fault("api", **fault) for _ in range(2)] if fault else []
    answer = served.pull(name)
    first, last = events_of(answer.body)
    assert (answer.status, first) == (200, {"status": "pulling manifest"})
    assert list(last) == ["error"] and words in last["error"]
    answer = served.pull(name, stream=False)
    assert answer.status == status and "error" in answer.json()
    assert answer.header("Retry-After") == ("600" if status == 503 else None)
    assert served.names() == []


@pytest.mark.parametrize("name", [
    "/etc/passwd", "../x/y", "org/.m", "org/a\u202eb", "o/" + "x" * 300, "org/m:a:b"])
def test_a_name_that_no_model_can_have(served: Registered, name: str) -> None:
    """Is a 400 that says why."""
    answer = served.pull(name)
    assert answer.status == 400
    assert ollama_error(answer).startswith("invalid model name: a model cannot be called")


def test_other_bytes_than_announced(hub: FakeHub, served: Registered) -> None:
    """Are no model."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    hub.faults = [Fault("storage", body=OTHER[:-1] + b"\0")]
    last = events_of(served.pull("org/m").body)[-1]
    assert "is not what it lists" in last["error"]
    assert served.names() == [] and served.blobs() == set()


@pytest.mark.parametrize(("path", "data", "text"), [
    ("m-Q8_0.gguf", b"hello", "'org/m/m-Q8_0.gguf' is no whole GGUF file"),
    ("manifest.json/m-Q8_0.gguf", SMALL, "a file of a model cannot be called 'manifest.json/m-Q")])
def test_what_can_be_no_model(
        hub: FakeHub, served: Registered, path: str, data: bytes, text: str) -> None:
    """Is told, and not listed."""
    hub.add("org/m", {path: data})
    answer = served.pull("org/m", stream=False)
    assert answer.status == 400 and text in ollama_error(answer)
    assert served.names() == [] and not list((served.home / "models").glob("*"))
