"""Who may write what, told to other processes by flock, which the kernel takes back on death.

    HOME/.registry.lock         held while links and manifests are changed and blobs are removed
    HOME/blobs/.<blob>.partial  held by the one who writes the blob
    HOME/blobs/<blob>           shared by everyone who is about to link to it, so that it stays

A blob is waited for only by those who hold no right to write one, so nobody waits in a circle.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of that file; blocks, after a call of ``waiting``, while another one does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A link may lead anywhere, and a pipe would be waited for.
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                   0o666)
    try:
        if not try_lock(lock):
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def registry(home: Path) -> AbstractContextManager[None]:
    """The right to change what the registry lists; nothing long is done under it."""
    return alone(home / ".registry.lock")


def try_lock(descriptor: int) -> bool:
    """Take the file's lock for this one alone, if nobody has it; never blocks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(descriptor: int) -> None:
    """Keep others from having the file alone; blocks while one does."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file is the one at ``path``: it may be gone since it was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
