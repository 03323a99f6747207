"""Clients that call all the time: every kind of call in turn, each answer as it should be."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CHAT, MODEL = "/v1/chat/completions", "m"
_HELLO = [{"role": "user", "content": "hello"}]


@dataclass(frozen=True)
class Kind:
    """One kind of call: what is sent, and what has to come back."""

    name: str
    path: str
    status: int = 200
    body: dict[str, Any] | bytes | None = None
    ends: bytes = b""

    def make(self, connection: http.client.HTTPConnection) -> str:
        """Make the call; "" where its answer is as it should be, else what it is."""
        body = self.body if isinstance(self.body, (bytes, type(None))) else json.dumps(self.body)
        method = "GET" if body is None else "POST"
        connection.request(method, self.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status == self.status and content.rstrip().endswith(self.ends):
            return ""
        return f"{self.name}: {answer.status} {content[:200]!r}"


def chat(name: str, path: str = CHAT, ends: bytes = b"", **fields: Any) -> Kind:
    """A chat with these fields beside its message."""
    return Kind(name, path, 200, {"model": MODEL, "messages": _HELLO, **fields}, ends)


_EVENTS = [{"role": "user", "content": "[20 events, 0 ms apart]"}]  # as tests.bench.engine reads it


# How often each kind comes in a round of twenty calls.
ROUND = [
    *[chat("chat", ends=b"}")] * 11,
    *[chat("stream", ends=b"data: [DONE]", stream=True, messages=_EVENTS)] * 4,
    chat("Ollama's chat", "/api/chat", b"}", stream=False),
    Kind("list", "/v1/models", ends=b"}"),
    Kind("engines", "/engines", ends=b"}"),
    Kind("unknown model", CHAT, 404, {"model": "nobody", "messages": _HELLO}, b"}"),
    Kind("no JSON", CHAT, 400, b"{", b"}"),
]


@dataclass
class Load:
    """So many calls by some clients at the same time; ``limit`` is seconds for all of them."""

    port: int
    calls: int
    limit: float
    clients: int = 8
    made: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def run(self, sample: Callable[[int], None]) -> int:
        """Make the calls, and have a sample taken now and then; how many there were.

        Blocks until they are made or the time is over.
        """
        numbers = itertools.count()
        until = time.monotonic() + self.limit
        threads = [threading.Thread(target=self._client, args=(numbers, until))
                   for _ in range(self.clients)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            sample(self.made.total())
            time.sleep(1.0)
        return self.made.total()

    def _client(self, numbers: "itertools.count[int]", until: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while (number := next(numbers)) < self.calls and time.monotonic() < until:
            kind = ROUND[number % len(ROUND)]
            try:
                fault = kind.make(connection)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                fault = f"{kind.name}: {error!r}"
            self.made[kind.name] += 1
            if fault:
                self.faults.append(fault)
            if number % 997 == 0:
                connection.close()  # the next call makes another one
        connection.close()
