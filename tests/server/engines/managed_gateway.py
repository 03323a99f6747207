"""A gateway whose engines are `engine_command` programs that it starts and stops."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.fakes.engine_journal import EngineJournal
from tests.fakes.processes import command_line, wait_until, with_variable
from tests.fakes.registry_home import LLAMA, RegistryHome
from tests.server.calls import get
from tests.server.gateway_process import ROOT, GatewayProcess

PROGRAM = str(ROOT / "tests/fakes/engine_command.py")
Files = Mapping[str, bytes]


class Managed(NamedTuple):
    """An entry of `loop.engines` with a command; `engine` makes them."""

    models: tuple[str, ...]
    options: tuple[str, ...]
    wrapper: tuple[str, ...]
    keys: dict[str, Any]

    def setting(self, directory: Path) -> dict[str, Any]:
        """The entry as it is configured; @NAME in an option is a path in `directory`."""
        options = [str(directory / option[1:]) if option[:1] == "@" else option
                   for option in (*self.wrapper, sys.executable, "-S", "-E", PROGRAM,
                                  "--port", "{port}", "--model", "{model}",
                                  "--journal", "@journal", *self.options)]
        return {"command": options, "models": list(self.models), **self.keys}


def engine(models: str | Sequence[str], *options: str, wrapper: Sequence[str] = (),
           **keys: Any) -> Managed:
    """An entry for these models whose program has these options; `keys` are those of the entry."""
    names = (models,) if isinstance(models, str) else tuple(models)
    return Managed(names, options, tuple(wrapper), keys)


def attached(url: str, model: str, **keys: Any) -> dict[str, Any]:
    """An entry for an engine at this address that someone else runs; `keys` are more of it."""
    return {"url": url, "models": [model], "kind": "openai", **keys}


class ManagedGateway(GatewayProcess):
    """A gateway with these entries, each model of theirs (no glob) in its registry.

    `models` are more models, or other files. With `home` the registry is another gateway's.
    Leaving raises AssertionError too when anything that the gateway started is still there.
    """

    def __init__(self, directory: Path, entries: Sequence[Managed | dict[str, Any]], *,
                 models: Mapping[str, Files] | None = None, home: Path | None = None,
                 **loop: Any) -> None:
        directory.mkdir(exist_ok=True)
        self.journal = EngineJournal(directory / "journal")
        self.home = home or directory / "home"
        settings = [entry.setting(directory) if isinstance(entry, Managed) else entry
                    for entry in entries]
        super().__init__(directory, {"server": {"threads": 64}, "loop": {
            "home": str(self.home), "read-timeout": "20s", "engines": settings, **loop}})
        if not self.home.exists():
            self._fill(RegistryHome(self.home), settings, models or {})
        self._killed = False

    @staticmethod
    def _fill(home: RegistryHome, settings: list[dict[str, Any]], models: Mapping[str, Files],
              ) -> None:
        named = [name for entry in settings for name in entry["models"] if "*" not in name]
        for name in dict.fromkeys([*named, *models]):
            home.add_files(name, models.get(name, {"model.gguf": LLAMA}))

    def __exit__(self, *exception: object) -> None:
        try:
            if self._killed:
                self.stop()
            else:
                super().__exit__(*exception)
            wait_until(lambda: not self.family(), "the end of all processes", 10)
        finally:
            for pid in self.family():
                os.kill(pid, signal.SIGKILL)

    def kill(self, *pids: int) -> None:
        """SIGKILL for these processes of it at once, or for its gunicorn master."""
        self._killed = self._killed or not pids or self.pid in pids
        for pid in pids or (self.pid,):
            os.kill(pid, signal.SIGKILL)

    def family(self) -> list[int]:
        """All processes that run on behalf of this gateway, itself among them."""
        return with_variable("HOME", str(self.directory))

    def programs(self, model: str = "") -> list[int]:
        """The engine processes that run, of this model or of all; not what they started."""
        found = {pid: command_line(pid).split(" ") for pid in self.family()}
        return [pid for pid, words in found.items() if words[1:4] == ["-S", "-E", PROGRAM]
                and model in ("", words[words.index("--model") + 1])]

    def engine(self, model: str) -> dict[str, Any]:
        """What GET /engines says of the one engine of this model."""
        [found] = [entry for entry in self.engines()["engines"] if entry["models"] == [model]]
        return dict(found)

    def engines(self) -> dict[str, Any]:
        """What GET /engines says."""
        answer = get(self.url, "/engines")
        assert answer.status == 200, answer.body
        return dict(answer.json())

    def state_of(self, url: str) -> str:
        """What GET /engines says of the attached engine at this address."""
        [found] = [entry for entry in self.engines()["engines"] if entry["id"] == url]
        assert found["kind"] == "attached"
        return str(found["state"])

    def wait_for_state(self, model: str, state: str) -> dict[str, Any]:
        """What GET /engines says of the engine, once it is in this state."""
        wait_until(lambda: self.engine(model)["state"] == state, f"{model} to be {state}")
        return self.engine(model)

    def wait_for_queue(self, model: str, queued: int) -> None:
        """Block until so many calls wait in the queue of this model's engine."""
        wait_until(lambda: self.engine(model)["queued"] == queued, f"{queued} queued calls")
