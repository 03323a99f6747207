"""What is measured: one module each, which starts it and says its address and root process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tests.bench.launch import Running, Site
from tests.bench.subjects import direct, gateway, hello, nginx


class Subject(Protocol):
    """What each of these modules holds."""

    NAME: str
    STREAMS: bool  # whether it can pass the engine's streams on

    def version(self, root: Path) -> str:
        """What will be measured; raises StartError, with the remedy, where it is not there."""

    def running(self, site: Site) -> AbstractContextManager[Running]:
        """The subject in front of the site's engine, inside the context. Raises StartError."""


BASE: Subject = direct
PEERS: dict[str, Subject] = {each.NAME: each for each in (nginx, hello, gateway)}
