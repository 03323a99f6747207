"""Progress on the way: lines for people on standard error, or JSON on standard output."""

import sys
from collections.abc import Iterable
from dataclasses import asdict

from app.catalog.problems import printable
from app.catalog.progress import Progress
from app.cli.command import print_json
from app.progress_line import ProgressLine


class Display:
    """Shows events as they come; to be used in a ``with`` statement."""

    def __init__(self) -> None:
        self._line: ProgressLine | None = None
        self._shown = ""
        self._complete = False

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def show(self, event: Progress) -> None:
        """One event; of a file that is whole at its first one there is nothing to say."""
        verb = event.status.partition(" ")[0]
        what = f"{verb} {printable(event.file)}" if event.file else event.status
        if what != self._shown:
            self.end()
            self._shown = what
            if not event.total:
                print(what, file=sys.stderr, flush=True)
            elif not event.finished:
                self._line = ProgressLine(what, event.total)
        self._complete = event.finished
        if self._line:
            self._line.show(event.completed)

    def end(self) -> None:
        """Whatever is printed next begins a new line."""
        if self._line:
            self._line.end(self._complete)
        self._line = None


def follow(events: Iterable[Progress], as_json: bool) -> Progress:
    """Show all events; the last one."""
    last = Progress("")
    with Display() as display:
        for last in events:
            if as_json:
                print_json({key: value for key, value in asdict(last).items() if value})
            elif not last.model:
                display.show(last)
    return last
