"""Taking away what no model needs."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from app.catalog.registry import Registry
from app.catalog.store.blobs import Blobs, put_blob
from app.catalog.store.sweep import BLOB_UNUSED, UNFINISHED, Removed, sweep
from tests.fakes.whole_gguf import LARGE, OTHER, PROJECTOR, SMALL
from tests.unit.catalog.store.conftest import Put, blobs_in, sha256


def test_an_empty_registry_stays_empty(tmp_path: Path) -> None:
    """Also one that is not there yet."""
    assert sweep(tmp_path / "home") == []


def test_what_no_model_needs_goes(put: Put, tmp_path: Path) -> None:
    """Blobs and unfinished ones; what models need stays."""
    put("a", {"m.gguf": SMALL})
    put_blob(tmp_path, BytesIO(OTHER), sha256(OTHER))
    with Blobs(tmp_path) as blobs:
        rest = blobs.unfinished(sha256(LARGE))
        rest.write_bytes(LARGE[:1000])
        link = rest.with_suffix(".link")
        link.write_bytes(b"x")
        unused = blobs.path(sha256(OTHER))
    assert set(sweep(tmp_path)) == {
        Removed(rest, 1000, UNFINISHED), Removed(link, 1, UNFINISHED),
        Removed(unused, len(OTHER), BLOB_UNUSED)}
    assert blobs_in(tmp_path) == {f"sha256-{sha256(SMALL)}"}
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == SMALL


def test_what_is_worked_with_stays(tmp_path: Path) -> None:
    """A blob that is claimed, and one that grows."""
    put_blob(tmp_path, BytesIO(SMALL), sha256(SMALL))
    with Blobs(tmp_path) as blobs:
        made = blobs.try_open(sha256(LARGE))
        assert made and blobs.claim(sha256(SMALL))
        made.write(LARGE[:1])
        assert sweep(tmp_path) == []
        made.close()
    assert len(sweep(tmp_path)) == 2 and not blobs_in(tmp_path)


def test_unfinished_models_go(put: Put, tmp_path: Path) -> None:
    """Directories with nothing but links to blobs, and no manifest that is a file."""
    models = tmp_path / "models"
    put("a", {"m.gguf": SMALL, "sub/mmproj.gguf": PROJECTOR})
    (models / "a" / "manifest.json").rename(models / "a" / ".manifest.json")
    (models / "empty").mkdir()
    put("folder", {"a/m.gguf": SMALL})
    (models / "folder" / "manifest.json").unlink()
    (models / "folder" / "a").rename(models / "folder" / "manifest.json")
    removed = sweep(tmp_path)
    assert [each.path for each in removed if each.kind == UNFINISHED] == [
        models / "a", models / "empty", models / "folder"]
    assert not list(models.iterdir()) and not blobs_in(tmp_path)


def test_what_others_put_there_stays(put: Put, tmp_path: Path) -> None:
    """Files in the registry that are not ours, and directories that lie elsewhere."""
    put("a", {"m.gguf": SMALL})
    outside = tmp_path / "outside"
    outside.mkdir()
    kept = [tmp_path / "models" / "own" / "weights.gguf", tmp_path / "models" / "file",
            tmp_path / "blobs" / "notes.txt", tmp_path / "blobs" / "sha256-short"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
    (tmp_path / "models" / "link").symlink_to(outside)
    assert sweep(tmp_path) == []
    assert all(path.read_bytes() == b"mine" for path in kept)
    assert outside.is_dir() and (tmp_path / "models" / "link").is_symlink()
