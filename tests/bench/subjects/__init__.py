"""What is measured: one module each, which starts it and says its address and root process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tests.bench.launch import Running, Site
from tests.bench.subjects import direct, floor, gateway, hello, litellm, nginx, portkey


class Subject(Protocol):
    """What each of these modules holds."""

    NAME: str
    MOST_STREAMS: int  # that it is asked for at a time
    PICTURES: bool  # whether it takes requests with pictures

    def version(self, root: Path) -> str:
        """What will be measured; raises StartError, with the remedy, where it is not there."""

    def running(self, site: Site) -> AbstractContextManager[Running]:
        """The subject in front of the site's engine, inside the context. Raises StartError."""


BASE: Subject = direct
GATEWAY: Subject = gateway
PEERS: dict[str, Subject] = {each.NAME: each for each in (nginx, hello, floor, portkey, litellm)}
