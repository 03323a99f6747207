"""Model files over HTTP: in parts, broken, cut, growing; their facts are right or not given."""

from __future__ import annotations

import json

import pytest

from tests.fakes import gguf_writer
from tests.fakes.gguf_writer import LITTLE, Type
from tests.fakes.registry_home import gguf
from tests.server.calls import SHOW, get, ollama_error, openai_error, post
from tests.server.served_registry import GOOD, Served, rewriting


def test_the_parts_of_a_split_model_are_one_model(served: Served) -> None:
    """Its size is the sum, its digest and metadata are those of part 1."""
    parts = {f"x-0000{number}-of-00003.gguf": gguf({
        "general.architecture": "qwen2", "split.no": number}) + b"x" * number
        for number in (1, 2, 3)}
    directory = served.home.add_files("split:Q4_0", parts)
    listed = json.loads((directory / "manifest.json").read_bytes())["files"]
    assert served.others() == ["split:Q4_0"]
    [tag] = [model for model in get(served.url, "/api/tags").json()["models"]
             if model["name"] == "split:Q4_0"]
    assert tag["size"] == sum(map(len, parts.values()))
    assert tag["digest"] == listed[0]["sha256"]
    shown = post(served.url, SHOW, {"model": "split:Q4_0"}).json()
    assert shown["model_info"] == {"general.architecture": "qwen2", "split.no": 1}


WHOLE = gguf_writer.gguf(
    [("general.architecture", Type.STRING, "llama"), ("llama.context_length", Type.UINT32, 77),
     ("general.name", Type.STRING, "abcdef")], tensors=[LITTLE.tensor("t", 8)])
BAD_GGUFS = {
    "nothing": b"", "magic_only": b"GGUF", "other": b"GGML" + WHOLE[4:], "page": b"<html></html>",
    "cut_in_text": WHOLE[:WHOLE.index(b"abcdef") + 3], "cut_in_key": WHOLE[:40],
    "cut_in_head": WHOLE[:20], "no_tensors": WHOLE[:WHOLE.index(b"abcdef") + 6],
    "long_array": LITTLE.header(1) + LITTLE.text("a") + b"\x09\0\0\0" + LITTLE.array_head(0, 2**63),
    "many_keys": LITTLE.header(2**63) + WHOLE[24:], "odd_type": (
        LITTLE.header(1) + LITTLE.text("a") + b"\x63\0\0\0" + bytes(8)),
    "odd_version": b"GGUF\x63\0\0\0" + WHOLE[8:],
}


@pytest.mark.parametrize("data", BAD_GGUFS.values(), ids=BAD_GGUFS)
def test_a_broken_model_file_does_no_harm(served: Served, data: bytes) -> None:
    """Marked, listed without facts or left out, it makes nothing fail and shows no wrong value."""
    served.home.add("broken:Q4_0", data)
    assert served.others() in ([], ["broken:Q4_0"])
    shown = post(served.url, SHOW, {"model": "broken:Q4_0"})
    if shown.status == 200:
        right = {"general.architecture": "llama", "llama.context_length": 77,
                 "general.name": "abcdef"}
        assert shown.json()["model_info"].items() <= right.items()
    else:
        assert 400 <= shown.status < 500 and ollama_error(shown)
    answer = get(served.url, "/v1/models/broken:Q4_0")
    assert answer.status == 200 or openai_error(answer)["code"] == "model_not_found"


def test_a_model_file_that_is_growing_does_no_harm(served: Served) -> None:
    """Read while it is written, a file gives its facts or none, and no failure."""
    directory = served.home.add("growing:Q4_0", WHOLE)
    with rewriting(directory / "model.gguf", [WHOLE[:n] for n in range(0, len(WHOLE), 9)]):
        for _ in range(30):
            assert set(GOOD) <= set(served.names())
            shown = post(served.url, SHOW, {"model": "growing:Q4_0"})
            assert shown.status in (200, 404), shown.body
            assert b'"abc"' not in shown.body
