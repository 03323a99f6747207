"""Bytes and names that are on the disk once a function returns, and room for them."""

import os
import shutil
from pathlib import Path

from app.catalog.problems import NoSpace

_SPARE = 32 * 1024 * 1024  # bytes of disk to leave free


def require_space(folder: Path, needed: int, what: str) -> None:
    """Raises NoSpace unless the disk of ``folder`` holds ``needed`` bytes more, and some spare."""
    if not needed:
        return
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE:
        raise NoSpace(f"{what} needs {(needed + _SPARE) // 10**6} MB on the disk of {folder}, "
                      f"which has {free // 10**6} MB free: make room, or set LOOP_LOOP_HOME to a "
                      "directory elsewhere")


def write(descriptor: int, data: bytes) -> None:
    """Write all of ``data`` where the open file is."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest):]


def put(made: Path, place: Path) -> None:
    """Rename, and have the directory on the disk before anything is built on it."""
    os.replace(made, place)
    sync(place.parent)


def sync(path: Path) -> None:
    """Have the bytes of a file, or the names in a directory, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
