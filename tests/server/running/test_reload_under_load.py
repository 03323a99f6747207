"""Twenty new configurations while calls come all the time: not one of them fails."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tests.fakes.processes import wait_until
from tests.server.engines.calling import (
    Crowd, chat, crowd, ollama, streaming, streams_whole, succeeds,
)
from tests.server.engines.managed_gateway import ManagedGateway, attached, engine
from tests.server.running.changing import reload

RELOADS, MODELS = 20, ["kept", "moving", "changing", "lent", "flapping"]


def entries(lender: ManagedGateway, directory: Path, number: int) -> list[dict[str, Any]]:
    """The engines of the n-th configuration: one is always the same, the others are not."""
    program = [
        engine("kept", slots=2), engine("changing", slots=2 + number % 3),
        engine("flapping", *(["--answer", "0.05"] if number % 2 else [])), engine("moving")]
    managed = [each.setting(directory) for each in program[:3 + (number % 4 < 2)]]
    elsewhere = attached(lender.url.replace("127.0.0.1", "localhost"), "moving")
    lent = attached(lender.url, "lent", **{"read-timeout": f"{20 + number % 2}s"})
    return [lent, *managed, elsewhere] if number % 2 else [elsewhere, *reversed(managed), lent]


def keep_busy(calls: Crowd, enough: threading.Event) -> list[Future[int]]:
    """Calls of every model, whole and as streams, one after another until it is enough."""
    def streams(model: str) -> int:
        count = 0
        while not enough.is_set():
            with streaming(calls.url, model, "events:4 answer:0.2") as stream:
                assert len(streams_whole(stream.answer)) == 4
            count += 1
        return count

    def natively(model: str) -> int:
        count = 0
        while not enough.is_set():
            succeeds(ollama(calls.url, model))
            count += 1
        return count

    return [
        *(calls.keep_asking(model, "answer:0.05", enough) for model in MODELS),
        *(calls.run(lambda model=model: streams(model)) for model in MODELS),
        *(calls.run(lambda model=model: natively(model)) for model in MODELS[2:]),
    ]


def test_no_call_fails(tmp_path: Path) -> None:
    """Streams that began before the first of them and end after the last are whole, too."""
    enough = threading.Event()
    directory = tmp_path / "gateway"
    with ManagedGateway(tmp_path / "lender", [engine(["lent", "moving"])]) as lender, \
            ManagedGateway(directory, entries(lender, directory, 0)) as gateway:
        gate = directory / "long.gate"
        with crowd(gateway.url) as calls, \
                streaming(gateway.url, "kept", f"until:{gate}") as first, \
                streaming(gateway.url, "changing", f"until:{gate}") as second:
            [kept] = gateway.programs("kept")
            work = keep_busy(calls, enough)
            for number in range(1, RELOADS + 1):
                reload(gateway, engines=entries(lender, directory, number),
                       queue={"size": 64 + number}, aliases={f"alias-{number}": "kept"})
                succeeds(chat(gateway.url, f"alias-{number}"))
            enough.set()
            counts = [each.result() for each in work]
            gate.touch()
            assert len(streams_whole(first.answer)) == len(streams_whole(second.answer)) == 3
            assert all(counts), counts
        assert len(gateway.journal.entries("started", "changing")) >= RELOADS / 5
        assert gateway.programs("kept") == [kept]
        # Of each model there is one engine, whatever came and went meanwhile.
        wait_until(lambda: len(gateway.programs()) < len(MODELS), "the end of the others")
