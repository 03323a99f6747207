"""The SHA-256 of a file that takes a while to read."""

import hashlib
from collections.abc import Generator
from pathlib import Path
from threading import Event

from app.catalog.problems import Cancelled
from app.catalog.progress import Progress
from app.catalog.store.partial import PIECE


def sha256_of(path: Path, status: str, called: str,
              cancelled: Event) -> Generator[Progress, None, str]:
    """The hex SHA-256; an event of that status for every piece. Raises OSError and Cancelled."""
    digest, done = hashlib.sha256(), 0
    total = path.stat().st_size
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
            done += len(piece)
            yield Progress(status, total=total, completed=done, file=called)
            if cancelled.is_set():
                raise Cancelled
    return digest.hexdigest()
