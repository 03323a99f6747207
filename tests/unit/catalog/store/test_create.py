"""Models made of other models, and of blobs that were uploaded."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.catalog.manifest import Entry
from app.catalog.problems import BadFile, BadName, CatalogError, NotFound
from app.catalog.registry import Registry
from app.catalog.store.blobs import put_blob
from app.catalog.store.create import from_blobs, from_model
from app.catalog.store.sweep import sweep
from tests.fakes.deaths import deaths
from tests.fakes.gguf_writer import Type
from tests.fakes.whole_gguf import OTHER, PARTS, PROJECTOR, SMALL, whole
from tests.unit.catalog.store.conftest import Put, blobs_in, sha256

MODELFILE: dict[str, Any] = {
    "system": "Be brief.", "template": "{{ .Prompt }}",
    "parameters": {"temperature": 0.5, "stop": ["a", "b"]},
    "messages": [{"role": "user", "content": "hi"}]}


def found(home: Path, name: str) -> Entry:
    """The model of that name."""
    entry = Registry(home).find(name)
    assert entry
    return entry


def upload(home: Path, *data: bytes) -> list[str]:
    """Their digests, once they are blobs."""
    for each in data:
        put_blob(home, BytesIO(each), sha256(each))
    return [f"sha256:{sha256(each)}" for each in data]


def test_a_model_of_another_one(put: Put, tmp_path: Path) -> None:
    """It shares the files, and has what was added under one key after those of loop pull."""
    put("org/a:Q8_0", {"m.gguf": SMALL})
    from_model(tmp_path, "mine", "ORG/a:q8_0", MODELFILE)
    path = tmp_path / "models" / "mine" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    assert list(manifest) == [
        "name", "repo", "revision", "commit", "quant", "files", "pulledAt", "modelfile"]
    assert manifest["modelfile"] == {"from": "org/a:Q8_0", **MODELFILE}
    entry = found(tmp_path, "mine")
    assert entry.modelfile == manifest["modelfile"] and entry.first_file.read_bytes() == SMALL
    assert (entry.quant, entry.repo) == ("Q8_0", "org/m")
    assert blobs_in(tmp_path) == {f"sha256-{sha256(SMALL)}"}


def test_a_model_of_a_model_that_was_made(put: Put, tmp_path: Path) -> None:
    """What the first one adds holds where the second says nothing, each parameter by itself."""
    put("a", {"m.gguf": SMALL})
    from_model(tmp_path, "b", "a", MODELFILE)
    from_model(tmp_path, "c", "b", {"system": "Sing.", "parameters": {"temperature": 1}})
    assert found(tmp_path, "c").modelfile == {
        **MODELFILE, "from": "b", "system": "Sing.",
        "parameters": {"temperature": 1, "stop": ["a", "b"]}}


def test_a_model_can_be_made_anew_of_itself(put: Put, tmp_path: Path) -> None:
    """Its files stay."""
    put("a", {"m.gguf": SMALL})
    from_model(tmp_path, "a", "a", {"system": "x"})
    assert found(tmp_path, "a").modelfile == {"from": "a", "system": "x"}
    assert found(tmp_path, "a").first_file.read_bytes() == SMALL


@pytest.mark.parametrize(("name", "base", "kind"), [
    ("b", "none", NotFound), ("../b", "a", BadName), ("", "a", BadName)])
def test_what_cannot_be_made_is_told(put: Put, tmp_path: Path, name: str, base: str,
                                     kind: type[CatalogError]) -> None:
    """And nothing is changed."""
    put("a", {"m.gguf": SMALL})
    with pytest.raises(kind):
        from_model(tmp_path, name, base, {})
    assert [entry.name for entry in Registry(tmp_path).entries()] == ["a"]


def test_a_model_of_blobs(tmp_path: Path) -> None:
    """All parts and a projector, whatever their order; its quantisation by name."""
    paths = [*reversed(PARTS), "mmproj.gguf"]
    data = [*reversed(PARTS.values()), PROJECTOR]
    from_blobs(tmp_path, "mine", dict(zip(paths, upload(tmp_path, *data))), MODELFILE)
    entry = found(tmp_path, "mine")
    assert [file.path for file in entry.files] == [*PARTS, "mmproj.gguf"]
    assert (entry.quant, entry.modelfile, entry.repo) == ("Q8_0", MODELFILE, "")
    for file in entry.files:
        assert sha256((entry.directory / file.path).read_bytes()) == file.sha256


def test_a_quantisation_that_no_name_tells(tmp_path: Path) -> None:
    """Is that of the file."""
    data = whole(("general.file_type", Type.UINT32, 2))
    from_blobs(tmp_path, "mine", {"m.gguf": upload(tmp_path, data)[0]}, {})
    assert found(tmp_path, "mine").quant == "Q4_0"


@pytest.mark.parametrize(("files", "kind", "said"), [
    ({"m.gguf": "sha256:" + "0" * 64}, NotFound, "no blob 'sha256:000.*: upload it first"),
    ({"m.gguf": "x"}, BadName, "no SHA-256 digest"),
    ({}, BadFile, "no model among the files"),
    ({"mmproj.gguf": SMALL}, BadFile, "no model among the files"),
    ({"m.gguf": b"text"}, BadFile, "'m.gguf' is no whole GGUF file: .*not a GGUF file"),
    ({"m.gguf": SMALL[:-1]}, BadFile, "'m.gguf' is cut short"),
    ({"m.safetensors": SMALL}, BadFile, "'m.safetensors' is no GGUF file by its name"),
    ({"imatrix.gguf": SMALL}, BadFile, "neither a model nor a projector"),
    ({"a.gguf": SMALL, "b.gguf": OTHER}, BadFile, "more than one model among the files: a.gguf"),
    ({"x-00001-of-00002.gguf": SMALL}, BadFile, "x-00002-of-00002.gguf' is missing"),
    ({"../m.gguf": SMALL}, BadFile, "cannot be called '../m.gguf'"),
    ({"/m.gguf": SMALL}, BadFile, "cannot be called '/m.gguf'"),
    ({".m.gguf": SMALL}, BadFile, "too long or hidden"),
    ({"x" * 300 + ".gguf": SMALL}, BadFile, "too long or hidden"),
    ({"m\udcff.gguf": SMALL}, BadFile, "cannot be called"),
])
def test_files_that_are_no_model_are_told(tmp_path: Path, files: dict[str, Any],
                                          kind: type[CatalogError], said: str) -> None:
    """Each with its name; nothing is listed."""
    given = {path: upload(tmp_path, data)[0] if isinstance(data, bytes) else data
             for path, data in files.items()}
    with pytest.raises(kind, match=said):
        from_blobs(tmp_path, "mine", given, {})
    assert not Registry(tmp_path).entries()


def test_a_manifest_that_nobody_would_read(put: Put, tmp_path: Path) -> None:
    """Is not written: what is added must fit, and a model of that name stays as it was."""
    put("a", {"m.gguf": SMALL})
    from_model(tmp_path, "b", "a", {"system": "short"})
    with pytest.raises(BadFile, match="longer than 1048576 bytes: shorten it"):
        from_model(tmp_path, "b", "a", {"system": "x" * 2**20})
    assert found(tmp_path, "b").modelfile["system"] == "short"


def make_and_sweep(home: Path) -> None:
    """What the killed processes do: two uploads, a model of them, one of that, and a blob less."""
    model, projector, _ = upload(home, SMALL, PROJECTOR, OTHER)
    from_blobs(home, "a", {"m.gguf": model, "mmproj.gguf": projector}, {})
    from_model(home, "b", "a", {"system": "x"})
    sweep(home)


def test_a_kill_at_any_step_leaves_whole_models(tmp_path: Path) -> None:
    """Of all that Ollama's clients do to make one; the same done again comes to its end."""
    left = deaths(make_and_sweep, tmp_path)
    assert len(left) > 20
    for home in left:
        for entry in Registry(home).entries():
            for file in entry.files:
                assert sha256((entry.directory / file.path).read_bytes()) == file.sha256, home
        make_and_sweep(home)
        assert [entry.name for entry in Registry(home).entries()] == ["a", "b"]
        assert blobs_in(home) == {f"sha256-{sha256(data)}" for data in (SMALL, PROJECTOR)}
        assert not list(home.glob("models/*/.*"))
