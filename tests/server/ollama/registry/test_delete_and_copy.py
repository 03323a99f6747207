"""Models are removed and given second names."""

from __future__ import annotations

import pytest

from app.catalog.store.blobs import Blobs
from tests.fakes.raw_client import fetch
from tests.fakes.whole_gguf import OTHER, SMALL
from tests.server.calls import JSON, ollama_error, post, to_bytes
from tests.server.ollama.registry.asking import COPY, DELETE, Registered


@pytest.mark.parametrize("word", ["model", "name"])
@pytest.mark.parametrize("name", ["org/m:Q8_0", "ORG/M:q8_0"])
def test_a_model_is_deleted(served: Registered, name: str, word: str) -> None:
    """With the blobs that no other one needs."""
    served.put("org/m:Q8_0", SMALL)
    served.put("other", OTHER)
    answer = fetch(served.url, "DELETE", DELETE, to_bytes({word: name}), JSON)
    assert (answer.status, answer.body) == (200, b"")
    assert served.names() == ["other:latest"] and len(served.blobs()) == 1
    again = served.delete(name)
    assert (again.status, ollama_error(again)) == (404, f"model '{name}' not found")


def test_an_alias_leads_to_its_model(served: Registered) -> None:
    """Also to its end."""
    served.put("org/x", SMALL)
    assert served.delete("nick").status == 200 and served.names() == []


def test_a_copy_shares_the_files(served: Registered) -> None:
    """It is a model of its own: each of the two can go."""
    served.put("org/m:Q8_0", SMALL)
    answer = served.copy("ORG/m:q8_0", "mine")
    assert (answer.status, answer.body) == (200, b"")
    assert served.names() == ["mine:latest", "org/m:Q8_0"] and len(served.blobs()) == 1
    assert served.delete("org/m:Q8_0").status == 200
    assert served.entry("mine").first_file.read_bytes() == SMALL and served.is_sound()
    assert served.delete("mine").status == 200 and served.blobs() == set()


def test_a_copy_takes_the_place_of_another_model(served: Registered) -> None:
    """As Ollama's does; onto itself it changes nothing."""
    served.put("a", SMALL)
    served.put("b", OTHER)
    assert served.copy("a", "B").status == 200
    assert served.entry("b").first_file.read_bytes() == SMALL and len(served.blobs()) == 1
    assert served.copy("a", "A:latest").status == 200
    assert len(served.names()) == 2


COPIES = [
    ("nope", "x", 404, 'model "nope" not found'), ("", "x", 400, 'source "" is invalid'),
    ("a", "", 400, 'destination "" is invalid'),
    ("a", "../x", 400, 'destination "../x" is invalid: a model cannot be called'),
    ("a", "/etc/x", 400, 'destination "/etc/x" is invalid'),
    ("a", "x" * 300, 400, f'destination "{"x" * 200}…" is invalid'),
    ("a", "x:y:z", 400, "more than one tag"), ("a", "b\n", 400, "cannot be seen"),
    ("a", "nick", 400, "it is another name of a model"), ("a", "b--c", 409, "would lie where"),
]


@pytest.mark.parametrize(("source", "destination", "status", "words"), COPIES)
def test_copies_that_cannot_be(
        served: Registered, source: str, destination: str, status: int, words: str) -> None:
    """Say why, and change nothing."""
    served.put("a", SMALL)
    served.put("b/c:latest", OTHER)
    answer = served.copy(source, destination)
    assert answer.status == status and words in ollama_error(answer)
    assert served.names() == ["a:latest", "b/c:latest"]


@pytest.mark.parametrize("body", [{}, {"model": ""}, {"name": " "}], ids=repr)
def test_a_name_is_needed(served: Registered, body: dict[str, str]) -> None:
    """To delete something."""
    answer = fetch(served.url, "DELETE", DELETE, to_bytes(body), JSON)
    assert (answer.status, ollama_error(answer)) == (400, "model is required")


def test_a_registry_that_cannot_be_written(served: Registered) -> None:
    """Is told with the setting that says where it is."""
    served.put("a", SMALL)
    place = served.home / "models" / "b--latest"
    place.symlink_to("/tmp")
    try:
        answer = served.copy("a", "b")
    finally:
        place.unlink()
    assert answer.status == 500 and "is a link" in ollama_error(answer)


def test_a_blob_that_somebody_works_with_stays(served: Registered) -> None:
    """Another process is about to make a model of it."""
    digest = served.put("a", SMALL)
    with Blobs(served.home) as blobs:
        assert blobs.claim(digest)
        assert served.delete("a").status == 200
        assert served.has_blob(SMALL)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"source":1,"destination":"x"}'])
def test_what_is_no_copy(served: Registered, body: bytes) -> None:
    """Is a 400."""
    answer = post(served.url, COPY, body)
    assert answer.status == 400 and ollama_error(answer)
