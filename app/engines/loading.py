"""An engine that runs and is still loading its model: told from a busy one, and waited for."""

import re
import threading
import time
from collections.abc import Callable

from app.call import Reply
from app.engine_message import message
from app.engines.hangup import Departure
from app.errors import GatewayError, Kind

_SAID = re.compile(r"\bload(ing|ed)\b", re.IGNORECASE)
_LOOK = 0.25  # s between two looks

Ask = Callable[[str], tuple[int, bytes]]


def says_loading(reply: Reply) -> bool:
    """Whether a 503 means that the model is being loaded: one that names a time to come back, or
    speaks of something else, is for the client."""
    return (
        reply.status == 503 and not reply.header("retry-after")
        and _SAID.search(message(reply.body)) is not None
    )


class Loading:
    """Waits for one engine that loads; however many calls wait, one at a time asks the engine."""

    def __init__(self, ask: Ask, limit: float) -> None:
        """``ask`` sends a GET; nobody waits for longer than ``limit`` seconds."""
        self._ask = ask
        self._limit = limit
        self._lock = threading.Lock()
        self._asked_at = float("-inf")
        self._ready = False
        self.since: float | None = None  # while it loads

    def wait(self, departure: Departure, until: float) -> bool:
        """Return when the engine has done loading; False where it never said that it was.

        Blocks until ``until`` on the monotonic clock at most. Raises GatewayError: it is still
        loading then, it is gone, or the call has to end.
        """
        left, waited = threading.Event(), False
        departure.attach(left.set)
        try:
            while self._loads():
                waited = True
                if time.monotonic() >= until:
                    text = f"the engine was still loading its model after {self._limit:g} s"
                    raise GatewayError(Kind.ENGINE_NOT_READY, text, wait=5)
                if left.wait(_LOOK):
                    raise departure.error()
            return waited or self._ready
        finally:
            departure.detach()

    def hear(self, status: int, body: bytes) -> None:
        """What its /health has said to somebody who asked beside all calls.

        A 503 that speaks of something else says nothing of loading.
        """
        if status != 503:
            self.over()
        elif _SAID.search(message(body)):
            with self._lock:
                self.since = self.since or time.monotonic()

    def over(self) -> None:
        """It loads no more, or is gone; costs next to nothing where that is known."""
        if self.since is not None:
            with self._lock:
                self.since = None

    def deadline(self) -> float:
        """Until when a call that begins now may wait."""
        return time.monotonic() + self._limit

    def _loads(self) -> bool:
        """Ask the engine, unless somebody has just done so; raises GatewayError if it is gone."""
        with self._lock:
            now = time.monotonic()
            if now - self._asked_at < _LOOK:
                return self.since is not None
            self._asked_at = now
            self.since = self.since or now
        try:
            status, _ = self._ask("/health")
        except GatewayError as error:
            if error.kind is Kind.ENGINE_TIMEOUT:  # some do not answer while they load
                return True
            self.since = None
            raise
        self._ready = status == 200
        if status != 503:
            self.since = None
        return self.since is not None
