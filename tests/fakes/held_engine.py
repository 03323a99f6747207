"""Managed engines without processes: every step of their lives is held until a test lets it go."""

from __future__ import annotations

import threading
import time

from app.engines.client import EngineClient
from app.engines.failures import Limits
from app.engines.listening import Listener
from app.engines.making import CannotStart
from tests.fakes.raw_engine import RawEngine

LIMITS = Limits(1.0, 5.0)
PATIENCE = 10.0


class HeldProcess:
    """A process that becomes ready, ends by itself and dies only when it is told to."""

    def __init__(self, pid: int, engine: RawEngine) -> None:
        self.pid = pid
        self.engine = engine
        self.ready = threading.Event()
        self.may_stop = threading.Event()
        self.may_stop.set()
        self.stops: list[str] = []
        self.line = ""
        self.resident = 0
        self.stranger = False
        self._end: str | None = None
        self._gone = threading.Event()

    def end(self, how: str = "ended with exit code 1", line: str = "") -> None:
        """End by itself."""
        self.line, self._end = line, how
        self._gone.set()

    def ended(self) -> str | None:
        return self._end

    def last_line(self) -> str:
        return self.line

    def wait(self, seconds: float | None = None) -> bool:
        return self._gone.wait(seconds)

    def stop(self) -> None:
        self.stops.append("stop")
        self.may_stop.wait(PATIENCE)
        self.end("was ended by SIGTERM", self.line)

    def kill(self) -> None:
        self.stops.append("kill")
        self.end("was ended by SIGKILL", self.line)

    def listener(self, port: int) -> Listener:
        if self.stranger:
            return Listener.STRANGER
        return Listener.OURS if self.ready.is_set() else Listener.NOBODY

    def ports(self) -> set[int]:
        return set()

    def memory(self) -> int | None:
        return self.resident


class HeldCommand:
    """Starts held processes for one model; they are all in `started`, in their order.

    The HTTP side of each of them is `engine`.
    """

    learns_slots = False
    max_choices = None
    kind = None

    def __init__(self, name: str, engine: RawEngine, size: int = 1, slots: int = 1,
                 pinned: bool = False, start_timeout: float = PATIENCE) -> None:
        self.name = name
        self.engine = engine
        self.size = size
        self.slots = slots
        self.pinned = pinned
        self.start_timeout = start_timeout
        self.strikes = 2
        self.refuses: str | None = None
        self.ready_at_once = False
        self.strangers = 0
        self.started: list[HeldProcess] = []
        self._news = threading.Condition()

    def memory(self) -> int:
        return self.size

    def outdated(self) -> bool:
        return False

    def start(self, port: int) -> HeldProcess:
        if self.refuses:
            raise CannotStart(self.refuses)
        with self._news:
            process = HeldProcess(len(self.started) + 1, self.engine)
            process.stranger = len(self.started) < self.strangers
            if self.ready_at_once:
                process.ready.set()
            self.started.append(process)
            self._news.notify_all()
        return process

    def client(self, port: int) -> EngineClient:
        return EngineClient(self.engine.url, None, LIMITS, 8)

    def asker(self, port: int) -> EngineClient:
        return EngineClient(self.engine.url, None, LIMITS, 8)

    def process(self, number: int) -> HeldProcess:
        """The n-th process, counted from 1, once it is started."""
        with self._news:
            came = self._news.wait_for(lambda: len(self.started) >= number, PATIENCE)
            assert came, f"{self.name} was not started {number} times"
            return self.started[number - 1]


def settles(reached: object, patience: float = PATIENCE) -> bool:
    """Whether a function gives something true soon."""
    assert callable(reached)
    deadline = time.monotonic() + patience
    while not reached():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
