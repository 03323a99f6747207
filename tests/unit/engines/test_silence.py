"""What counts as silence of an engine on the way of a call."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from app.api.payload import JsonBody
from app.call import Call
from app.engines.admission import Admission, QueueRules
from app.engines.client import EngineClient
from app.engines.dispatch import dispatch
from app.engines.engine import Attached
from app.engines.failures import Limits
from app.engines.hangup import Departure
from app.engines.health import Health
from app.errors import GatewayError, Kind
from app.settings import EngineSettings
from tests.fakes.engine_steps import JSON_TYPE, chunks, head, hold, mark, reply, send
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import ev, framed, head_for
from tests.fakes.visits import HandClock

CHAT = Call("/v1/chat/completions", "m", JsonBody(b'{"model":"m"}', {"model": "m"}), "id")
QUESTION = Call("/health", "m", JsonBody(b"", {}), "id", method="GET")
CHUNKED = [*JSON_TYPE, ("Transfer-Encoding", "chunked")]
LIMITS = Limits(connect=20.0, read=20.0)


@pytest.fixture
def raw() -> Iterator[RawEngine]:
    """An engine that answers as the test says."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture
def engine(raw: RawEngine, clock: HandClock) -> Attached:
    """The gateway's side of it; one strike is enough, and its time is the test's."""
    client = EngineClient(raw.url, None, LIMITS, 4)
    made = Attached(EngineSettings(raw.url, ("m",), slots=4), client, client,
                    Admission(QueueRules(4, 60.0), 4))
    made.health = Health(1, clock)
    return made


def test_each_piece_of_a_document_is_heard(raw: RawEngine) -> None:
    """Also of one that is passed on only when it is whole."""
    go, heard = threading.Event(), list[int]()

    def hear() -> None:
        heard.append(1)
        if len(heard) == 2:  # the head, and the first piece
            go.set()

    raw.answer_with([send(head(200, CHUNKED)), chunks(b'{"a":'), hold(go), chunks(b"1}", b"")])
    client = EngineClient(raw.url, None, LIMITS, 4)
    assert client.send(CHAT, Departure(None), hear).body == b'{"a":1}'


def test_a_client_that_takes_its_answer_slowly_is_no_silence(
        raw: RawEngine, engine: Attached, clock: HandClock) -> None:
    """The engine may have sent more than it can be heard for; others' departures mean nothing."""
    first = framed("chunked", ev("a"))
    raw.answer_with([send(head_for("chunked", 0) + first), hold(threading.Event())])
    answer = dispatch([engine], CHAT, Departure(None))
    assert next(iter(answer.pieces))
    clock.now += 1000.0
    engine.health.expect()
    clock.now += 1.0
    engine.given_up(engine.client)
    assert (engine.health.strikes, engine.health.suspect) == (0, False)
    answer.close()


@pytest.mark.parametrize("after", [19.0, 20.0])
def test_a_client_that_leaves_is_a_strike_only_after_a_silence(
        raw: RawEngine, engine: Attached, clock: HandClock, after: float) -> None:
    """The time counts in which a call waited for the engine."""
    reached, departure = threading.Event(), Departure(None)

    def leave() -> None:
        assert reached.wait(20.0)
        clock.now += after
        departure.happen()

    raw.answer_with([mark(reached), hold(threading.Event())])
    leaving = threading.Thread(target=leave)
    leaving.start()
    with pytest.raises(GatewayError) as caught:
        dispatch([engine], CHAT, departure)
    leaving.join()
    assert caught.value.kind is Kind.CLIENT_GONE
    assert engine.health.suspect is (after == 20.0)


def test_only_an_answer_to_work_forgives_a_silence(
        raw: RawEngine, engine: Attached, clock: HandClock) -> None:
    """Small questions say as little as probes, and are no trial."""
    engine.health.expect()
    clock.now += 20.0
    assert engine.health.silent("late", 20.0)
    engine.health.expect_no_more()
    clock.now += 1.0
    raw.probe_script = reply(200, b"{}")
    assert dispatch([engine], QUESTION, Departure(None)).status == 200
    assert engine.health.suspect and engine.health.usable
    assert dispatch([engine], CHAT, Departure(None)).status == 200
    assert not engine.health.suspect and engine.health.strikes == 0
