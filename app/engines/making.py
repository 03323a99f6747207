"""What managed engines are made of: commands, and the processes that these start."""

from typing import NamedTuple, Protocol

from app.engines.client import EngineClient
from app.engines.listening import Listener
from app.settings import EngineSettings


class Process(Protocol):
    """A running engine, as ``app.engines.process.EngineProcess`` is one."""

    @property
    def pid(self) -> int: ...

    def ended(self) -> str | None: ...

    def last_line(self) -> str: ...

    def wait(self, seconds: float | None = None) -> bool: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def listener(self, port: int) -> Listener: ...

    def ports(self) -> set[int]: ...

    def memory(self) -> int | None: ...


class Command(Protocol):
    """How an engine for one model is started and reached."""

    name: str  # of its program
    start_timeout: float
    strikes: int
    slots: int | None  # as long as the engine itself says nothing; None: as many as come
    learns_slots: bool  # whether it is asked
    max_choices: int | None
    kind: str | None
    pinned: bool

    def memory(self) -> int:
        """Bytes that the engine will take, estimated."""

    def outdated(self) -> bool:
        """Whether the model, or a file of it, has been removed or replaced since the last start."""

    def start(self, port: int) -> Process:
        """The process, just started; raises CannotStart."""

    def client(self, port: int) -> EngineClient:
        """The way to the engine at that port."""

    def asker(self, port: int) -> EngineClient:
        """As ``client``, for questions whose answer nobody waits for long."""


class UnitKey(NamedTuple):
    """What tells a managed engine from all others, also after the configuration has changed.

    ``settings`` are what it is made of, and it is the ``number``-th one made of these.
    """

    settings: EngineSettings
    number: int
    model: str


class CannotStart(Exception):
    """The engine did not come up; the message completes "the engine of 'm' did not start: "."""
