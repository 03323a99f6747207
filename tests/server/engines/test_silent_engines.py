"""Engines that hang at their work and go on answering probes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.fakes.engine_steps import hold, reply
from tests.fakes.processes import running, wait_until, wait_until_gone
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import openai_error
from tests.server.engines.calling import chat, send, succeeds
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, attached, engine

PATIENCE = 20.0  # s; a guard against hanging
WELL = reply(200, b'{"status":"ok"}')


def give_up_by_turns(gateway: ManagedGateway, prompt: str, enough: Callable[[], bool]) -> None:
    """Calls whose clients leave long before the time limit, always at least one of them there."""
    until = time.monotonic() + PATIENCE
    before = send(RawClient(gateway.url), "m", prompt)
    while not enough():
        assert time.monotonic() < until, "nothing came of all the silence"
        time.sleep(0.2)
        after = send(RawClient(gateway.url), "m", prompt)
        before.close()
        before = after
    before.close()


def test_an_engine_that_hangs_is_restarted_though_clients_give_up(start: Start) -> None:
    """None of them waits for as long as the engine may be silent."""
    gateway = start([engine("m", slots=2, strikes=2, read_timeout="700ms")])
    succeeds(chat(gateway.url, "m"))
    first = gateway.journal.one("started", "m")
    give_up_by_turns(gateway, "silent:0", lambda: not running(first.pid))
    wait_until_gone([first.pid])
    assert "the engine sent nothing for 700 ms, 2 times in a row" in str(
        gateway.engine("m")["last_error"])
    succeeds(chat(gateway.url, "m"))


def test_clients_that_give_up_beside_a_good_answer_end_nothing(start: Start) -> None:
    """An engine that sends anything at all is not silent."""
    gateway = start([engine("m", slots=4, strikes=1, read_timeout="1500ms")])
    succeeds(chat(gateway.url, "m"))
    with RawClient(gateway.url) as client:
        answer = send(client, "m", "answer:3 events:20", stream=True).answer()
        ended = threading.Event()
        reader = threading.Thread(target=lambda: (answer.whole(), ended.set()))
        reader.start()
        give_up_by_turns(gateway, "silent:0", ended.is_set)
        reader.join()
    assert len(gateway.journal.entries("started", "m")) == 1
    assert gateway.engine("m")["strikes"] == 0


def test_probes_do_not_make_up_for_silent_calls(start: Start) -> None:
    """An attached engine stays suspect until a call on trial is answered."""
    go = threading.Event()
    with RawEngine(reply()) as hanging:
        hanging.probe_script = WELL
        gateway = start([attached(hanging.url, "m", strikes=2, **{"read-timeout": "300ms"})],
                        **{"probe-interval": "100ms"})
        hanging.answer_with(*[[hold(go), reply()]] * 2, reply())
        for _ in range(2):
            late = chat(gateway.url, "m")
            assert (late.status, openai_error(late)["code"]) == (504, "engine_timeout")
        seen = len(hanging.probes)
        wait_until(lambda: len(hanging.probes) >= seen + 3, "three more probes")
        assert gateway.state_of(hanging.url) == "suspect"
        assert gateway.engine("m")["strikes"] == 2
        go.set()
        succeeds(chat(gateway.url, "m"))
        assert gateway.state_of(hanging.url) == "ready"
        assert gateway.engine("m")["strikes"] == 0
