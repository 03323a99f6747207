"""A ledger of calls: what was done, what the gateway says of it, and what its engines have seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.keys import hash_of
from tests.api.holders import bearer, key_of
from tests.fakes.metrics_page import MetricsPage
from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.engines.managed_gateway import engine
from tests.server.gateway_process import GatewayProcess
from tests.server.scraping import settled
from tests.server.watching.calling import Scripted, held, make
from tests.server.watching.kinds import FIRST, FRAIL, KINDS, MAX_BODY, PLUG, Kind

CLIENTS = 8
FRAIL_EVERY = 2  # rounds
_KEYS: dict[str, dict[str, Any]] = {
    "alice": {}, "guest": {"models": ["any/*"]}, "hasty": {"rate": "1/day"},
    "single": {"concurrency": 1}, "watch": {"scopes": ["metrics"]},
}


class Ledger:
    """The calls that were made, the page and the log of the gateway, and the engine's count."""

    def __init__(self, made: list[Kind], page: MetricsPage, log: list[dict[str, Any]],
                 seen: Counter[str]) -> None:
        self.made = made
        self.page = page
        self.log = log
        self.seen = seen


def keep(directory: Path, rounds: int) -> Ledger:
    """Make so many calls of every kind, eight at a time; each has to be answered as it should."""
    script = Scripted()
    mixed = [kind for _ in range(rounds) for kind in KINDS]
    frail = [kind for _ in range(rounds // FRAIL_EVERY) for kind in FRAIL]
    with _gateway(directory, script) as gateway:
        _check([FIRST], [make(gateway.url, FIRST, 0, script)])
        with held(gateway.url, PLUG, script), ThreadPoolExecutor(CLIENTS + 1) as pool:
            killing = pool.submit(_one_by_one, gateway.url, frail, script)
            statuses = pool.map(lambda pair: make(gateway.url, pair[1], pair[0], script),
                                enumerate(mixed))
            _check(mixed, list(statuses))
            _check(frail, killing.result())
        made = [FIRST, PLUG, *mixed, *frail]
        page = settled(gateway.url, bearer("watch").items())
        # A call is counted a moment before it is logged.
        wait_until(lambda: len(_logged(gateway)) >= len(made), "all lines of the log")
        return Ledger(made, page, _logged(gateway), script.seen)


def _logged(gateway: GatewayProcess) -> list[dict[str, Any]]:
    return [each for each in gateway.requests() if each["route"] != "/metrics"]


def _one_by_one(url: str, kinds: Sequence[Kind], script: Scripted) -> list[int | None]:
    return [make(url, kind, number, script) for number, kind in enumerate(kinds)]


def _check(made: Sequence[Kind], statuses: Sequence[int | None]) -> None:
    for kind, status in zip(made, statuses):
        assert status in (None, kind.end.status), (kind, status)


@contextmanager
def _gateway(directory: Path, script: Scripted) -> Iterator[GatewayProcess]:
    home = RegistryHome(directory / "home")
    for model in ("m", "frail", "broken"):
        home.add(model)
    with RawEngine(script) as one, RawEngine(script) as other:
        attached = [{"url": one.url, "models": ["m", "any/*"], "kind": "openai"},
                    {"url": other.url, "models": ["full"], "kind": "openai", "slots": 1,
                     "read-timeout": "1h"},
                    {"url": "http://127.0.0.1:1", "models": ["gone"], "kind": "openai"}]
        managed = [engine("frail"), engine("broken", "--exit", "3")]
        settings = {
            "server": {"max-body": MAX_BODY, "body-timeout": "1s"},
            "loop": {"home": str(home.path), "read-timeout": "1s", "queue": {"size": 0},
                     "engines": attached + [each.setting(directory) for each in managed]},
            "keys": [{"name": name, "sha256": hash_of(key_of(name)), **more}
                     for name, more in _KEYS.items()]}
        with GatewayProcess(directory, settings) as gateway:
            yield gateway
