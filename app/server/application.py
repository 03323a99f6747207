"""The application that gunicorn serves: that of the configuration which counts now."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from app.config import ConfigError, effective, files, inert, load
from app.engines.loaded import Clock
from app.factory import Assembly, utc_now
from app.server.reloading import Reloader
from app.settings import Settings
from app.telemetry.access_log import AccessLog

log = logging.getLogger(__name__)


class Application:
    """A WSGI application that changes with its configuration, and its life from start to end."""

    def __init__(self, environ: Mapping[str, str], clock: Clock = utc_now) -> None:
        """Raises ConfigError. Starts nothing."""
        self._environ = environ
        self._others: list[Path] = []  # that are read beside those of the environment
        # Made first: what changes while it is read has changed.
        self._reloader = Reloader(lambda: [*files(environ), *self._others], self._read_again)
        self.settings = load(environ)
        self._others = _keys_file(self.settings)
        access_log = AccessLog(self.settings.server.log_format)
        self._assembly = Assembly(self.settings, clock, access_log)
        self._gateway = self._assembly.gateway
        self._app = self._assembly.app(self.settings)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        return self._app(environ, start_response)

    def start(self) -> None:
        """Start the engines that are to be there at once, and watch the configuration."""
        self._gateway.start()
        self._reloader.start()

    def reload(self) -> None:
        """Have the configuration read again soon; a signal handler may call this."""
        self._reloader.ask()

    def adopt(self, settings: Settings) -> None:
        """Let what comes from now on go by these settings; what runs is not disturbed.

        Raises ConfigError, and nothing has changed then. To be called by one thread at a time.
        """
        made, later = effective(settings, self.settings)
        for key in later:
            log.warning("%s has changed, which counts only after a restart", key)
        if made == self.settings:
            log.info("the configuration is read again: nothing that can count now has changed")
            return
        for key in inert(made):
            log.warning("%s is set, but nothing acts on it", key)
        app, routes = self._assembly.app(made), self._assembly.routes(made)
        self._gateway.adopt(routes)
        self._app = app
        log.info("the configuration is read again; %s", _difference(self.settings, made))
        self.settings = made

    def _read_again(self) -> None:
        """Adopt what the files say now; a keys-file that is refused is watched until it is mended.

        Raises ConfigError as ``adopt``.
        """
        refused: list[Path] = []
        try:
            self.adopt(load(self._environ))
        except ConfigError as error:
            refused = error.files
            raise
        finally:
            self._others = [*_keys_file(self.settings), *refused]

    def drain(self) -> None:
        """Take no more calls; those that run go on."""
        self._reloader.close()
        self._gateway.take_no_more()

    def end_calls(self) -> None:
        """Let every call end by an error now; returns at once."""
        self._gateway.end_calls()

    def close(self, hastily: bool = False) -> None:
        """End all engines that the gateway started; blocks until they are gone."""
        self.drain()
        self._gateway.close(hastily)


def _keys_file(settings: Settings) -> list[Path]:
    return [settings.keys_file] if settings.keys_file else []


def _difference(before: Settings, after: Settings) -> str:
    """How many entries of ``loop.engines`` are the same as before."""
    old, new = Counter(before.loop.engines), Counter(after.loop.engines)
    return (f"of its engines {(old & new).total()} are as before, {(new - old).total()} new, "
            f"{(old - new).total()} gone")
