"""The two ends of the calls of a ledger: the client that makes them, the engine that gets them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.api.holders import bearer
from tests.fakes.raw_client import RawClient, request_bytes
from tests.fakes.raw_engine import Exchange
from tests.server.calls import JSON
from tests.server.watching.kinds import SCRIPTS, Kind


class Scripted:
    """Answers each call as its word says, and notes that it has come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._came: dict[str, threading.Event] = {}
        self.seen: Counter[str] = Counter()

    def expect(self, word: str) -> threading.Event:
        """What is set once the call with this word has reached the engine."""
        with self._lock:
            return self._came.setdefault(word, threading.Event())

    def __call__(self, exchange: Exchange) -> None:
        body = json.loads(exchange.request.body)
        word = body.get("input") or body["messages"][-1]["content"]
        word = word if isinstance(word, str) else word[0]
        name = word.partition(" ")[0]
        with self._lock:
            self.seen[name] += 1
        self.expect(word).set()
        for step in SCRIPTS[name]:
            step(exchange)


def make(url: str, kind: Kind, number: int, engine: Scripted) -> int | None:
    """Make one call; its status where it was answered."""
    word = f"{kind.name} {number}"
    came = engine.expect(word)
    with RawClient(url) as client:
        _send(client, kind, word)
        if kind.leave == "at once":
            assert came.wait(20)
        elif kind.leave == "midway":
            next(client.answer(kind.method).pieces())
        else:
            return client.answer(kind.method).whole().status
        if number % 2:
            client.reset()
        return None


@contextmanager
def held(url: str, kind: Kind, engine: Scripted) -> Iterator[None]:
    """The call is under way; its client leaves at the end."""
    word = f"{kind.name} held"
    with RawClient(url) as client:
        _send(client, kind, word)
        assert engine.expect(word).wait(20)
        yield


def _send(client: RawClient, kind: Kind, word: str) -> None:
    own = dict(kind.headers)
    headers = {"Host": client.host, **(bearer(kind.key) if kind.key else {}), **own}
    data = request_bytes(kind.method, kind.path, [*headers.items(), *JSON], kind.body(word))
    client.send(data[:-1] if kind.leave == "late" else data)
