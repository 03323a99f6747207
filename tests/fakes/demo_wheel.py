"""A package like that of the demo model, small and made on the spot."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

from app.catalog.registry import Registry
from app.launcher.demo import SMOLLM2
from tests.fakes.registry_home import LLAMA

CONTENT = LLAMA + bytes(range(256)) * 8192  # two pieces of copying
MODEL = replace(
    SMOLLM2, package="tiny-demo==1.0", package_size=1000, size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest())
INFO = {
    "METADATA": "Metadata-Version: 2.1\nName: tiny-demo\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


def write_wheel(folder: Path, content: bytes = CONTENT, file: str = MODEL.file) -> Path:
    """A wheel that pip takes, with `content` as its one file beside the metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tiny_demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"tiny_demo/{file}", content)
        for name, text in INFO.items():
            wheel.writestr(f"tiny_demo-1.0.dist-info/{name}", text)
    return path


def fetch(package: str, size: int, folder: Path) -> Path:
    """Stands in for the download: the wheel is made in `folder`."""
    assert (package, size) == (MODEL.package, MODEL.package_size)
    return write_wheel(folder / "wheels")


def is_whole(home: Path) -> bool:
    """Whether the registry `home` lists the model and nothing else, with all of its bytes."""
    entries = Registry(home).entries()
    return ([entry.name for entry in entries] == [MODEL.name]
            and entries[0].first_file.read_bytes() == CONTENT)
