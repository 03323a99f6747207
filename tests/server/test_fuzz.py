"""Whatever comes in over a connection: scripts/fuzz-http does the same for longer."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.gateway import fuzzed
from tests.fuzz.judging import try_all
from tests.server.scraping import settled

CONNECTIONS, SEED = 300, 5


def test_nothing_breaks_the_gateway(tmp_path: Path) -> None:
    """Each connection gets an answer in JSON that is no 500, or ends; the same worker goes on."""
    with fuzzed(tmp_path) as gateway:
        workers = gateway.workers()
        verdicts = try_all(gateway.url, CONNECTIONS, SEED)
        assert verdicts.faults == []
        assert {200, 400, 404, 405} <= set(verdicts.statuses) and 500 not in verdicts.statuses
        assert gateway.workers() == workers and settled(gateway.url)
