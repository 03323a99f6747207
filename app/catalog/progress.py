"""How far something is that takes a while: what a progress bar and a stream of events show."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_INTERVAL = 0.1  # s between two events of the same kind


@dataclass(frozen=True)
class Progress:
    """One event. ``status`` is in Ollama's words (api/types.go, ProgressResponse).

    ``digest`` is ``sha256:…`` of the file that is worked on, ``file`` its path, ``total`` and
    ``completed`` count its bytes. ``model``: the name that is in the registry from now on.
    """

    status: str
    digest: str = ""
    total: int = 0
    completed: int = 0
    file: str = ""
    model: str = ""

    @property
    def finished(self) -> bool:
        """Whether all bytes of the file are there."""
        return self.completed >= self.total


def thinned(events: Iterable[Progress]) -> Iterator[Progress]:
    """The events without those that follow one of the same status and file too soon.

    What is new, and the last of each, is always there, once.
    """
    shown: Progress | None = None
    since = 0.0
    for event in events:
        same = shown and (shown.status, shown.digest) == (event.status, event.digest)
        if event == shown or same and not event.finished and time.monotonic() - since < _INTERVAL:
            continue
        shown, since = event, time.monotonic()
        yield event
