"""A registry that a gateway serves: five good models, and what a test puts beside them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.registry_home import RegistryHome
from tests.server.calls import get
from tests.server.gateway_process import GatewayProcess

GOOD = [f"good-{number}:Q8_0" for number in range(5)]


class Served:
    """A registry that a gateway serves; it holds the five good models and what tests add."""

    def __init__(self, home: RegistryHome, gateway: GatewayProcess) -> None:
        self.home = home
        self.gateway = gateway
        self.url = gateway.url

    def names(self) -> list[str]:
        """What both lists offer; they have to agree."""
        tags, models = get(self.url, "/api/tags"), get(self.url, "/v1/models")
        assert (tags.status, models.status) == (200, 200)
        names = [model["id"] for model in models.json()["data"]]
        offered = [model["model"] for model in tags.json()["models"]]
        assert [name.removesuffix(":latest") for name in offered] == names
        return names

    def others(self) -> list[str]:
        """The listed models beside the five, which have to be there once each."""
        names = self.names()
        assert sorted(set(names) & set(GOOD)) == GOOD and len(names) == len(set(names))
        return [name for name in names if name not in GOOD]

    def clean(self, before: set[bytes]) -> None:
        """Take out of the registry what was not there `before`."""
        models, attic = os.fsencode(self.home.models), os.fsencode(self.home.path)
        for entry in set(os.listdir(models)) - before:
            aside = os.urandom(8).hex().encode()
            os.rename(os.path.join(models, entry), os.path.join(attic, aside))


@contextmanager
def rewriting(path: Path, versions: list[bytes]) -> Iterator[None]:
    """Write these contents into `path` in turn, as fast as it goes, until the context is left."""
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for data in versions:
                path.write_bytes(data)
    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
