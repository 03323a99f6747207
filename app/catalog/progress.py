"""How far something is that takes a while: what a progress bar and a stream of events show."""

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

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


Events: TypeAlias = Generator[Progress, None, None]


def thinned(events: Events) -> Events:
    """The events without those that follow one of the same status and file too soon.

    What is new, and the last of each, is always there, once. Closing it closes ``events``.
    """
    shown: Progress | None = None
    since = 0.0
    with closing(events):
        for event in events:
            if event == shown or time.monotonic() - since < _INTERVAL and _continues(shown, event):
                continue
            shown, since = event, time.monotonic()
            yield event


def _continues(shown: Progress | None, event: Progress) -> bool:
    """Whether an event says of the same thing that it is a little further."""
    return (shown is not None and not event.finished
            and (shown.status, shown.file) == (event.status, event.file))
