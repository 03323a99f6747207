"""Child processes that belong together: started in turn, watched, and stopped in reverse."""

import time
from collections.abc import Callable
from types import TracebackType

from app.launcher.child import ENDING, Child
from app.engines.lifeline import Signals

_STOP_LIMIT = 8.0  # s; longer than a child needs that ends what it has begun


class ChildEnded(Exception):
    """A child is not what it should be; the message says which, how it ended and its last words."""


class Children:
    """Processes started one after another and stopped, on leaving the context, in reverse.

    `signals` must deliver SIGCHLD beside the ending signals. An ending signal that comes while a
    method waits is raised as KeyboardInterrupt.
    """

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._children: list[Child] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for child in reversed(self._children):
            child.stop(self._signals, _STOP_LIMIT)

    def add(self, child: Child, answers: Callable[[], bool], limit: float) -> None:
        """Take over `child`; blocks until it `answers`. Raises ChildEnded, also after `limit` s."""
        self._children.append(child)
        deadline = time.monotonic() + limit
        while not answers():
            self._check(starting=True)
            if time.monotonic() > deadline:
                raise ChildEnded(f"the {child.name} did not answer within {limit:g} s")
            self._wait(0.1)

    def watch(self) -> None:
        """Block until a child ends by itself, which is raised as ChildEnded."""
        while True:
            self._check(starting=False)
            self._wait(60.0)

    def _check(self, starting: bool) -> None:
        for child in self._children:
            if sentence := child.ended():
                told = child.last_lines() if starting and child.log else []
                raise ChildEnded("\n".join([*told, sentence]))

    def _wait(self, seconds: float) -> None:
        if self._signals.wait(seconds) in ENDING:
            raise KeyboardInterrupt
