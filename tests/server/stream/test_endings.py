"""A stream ends once: well, or with one error that no client can miss; never both or neither."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.fakes.engine_steps import close, hold, mark, reset, send
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import DONE, STOP, ev, framed, head_for
from tests.server.calls import post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, COMPLETIONS, MESSAGES, STREAMING, Api, named
from tests.server.stream.asking import HTTP_10, HTTP_11, ask, read_up_to
from tests.server.stream.outcome import IN_BAND, REFUSED, SUCCESS, last_error, outcome, refusal
from tests.server.stream.stream_faults import FAULTS, TOLD, Fault


Then = Callable[[Api, str, bytes, str], RawAnswer]
PATIENCE = 5.0  # seconds; an answer that is still not over then never ends
# Every API, and for two of them the older HTTP as well.
ASKED = [*((api, HTTP_11) for api in STREAMING), (CHAT, HTTP_10), (MESSAGES, HTTP_10)]
EACH = pytest.mark.parametrize(
    ("api", "version"), ASKED, ids=[f"{api.id}-{version[-3:]}" for api, version in ASKED])


def follow(gateway: GatewayProcess, api: Api, expected: bytes, seen: threading.Event,
           version: str = HTTP_11) -> RawAnswer:
    """Ask, read what the engine has sent, let it go on, and read the rest."""
    if not expected:
        seen.set()
    with RawClient(gateway.url, PATIENCE) as client:
        answer = ask(client, api, version)
        if answer.status == 200:
            got = read_up_to(answer, len(expected))
            assert got.startswith(expected)  # a length that is reached ends without waiting
        seen.set()
        answer.whole()
        assert not client.was_reset
        return answer


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@EACH
def test_a_stream_that_fails_ends_with_one_error(
        patient: GatewayProcess, engine: RawEngine, api: Api, version: str, fault: Fault,
        count: int) -> None:
    """However an engine breaks off, its events arrive, then one error, then a clean end."""
    seen = threading.Event()
    engine.answer_with(fault.script(api, count, seen))
    sent = fault.sent(api, count)
    answer = follow(patient, api, sent, seen, version)
    found = outcome(api, answer)
    if found == REFUSED:
        assert not sent, "the client had seen a stream"
        assert answer.status == 502
        said = refusal(api, answer)
    else:
        assert found == IN_BAND
        assert answer.body.startswith(sent) and b"HTTP/1.1 500" not in answer.body
        said = last_error(api, answer)
    if not api.anthropic:
        assert said["code"] == "upstream_error"


@pytest.fixture
def then(patient: GatewayProcess, engine: RawEngine) -> Then:
    """The answer where the engine sends this much of a stream and then goes this way."""
    def answer(api: Api, version: str, body: bytes, way: str) -> RawAnswer:
        seen = threading.Event()
        engine.answer_with(
            [send(head_for("chunked")), send(framed("chunked", body)), hold(seen), *TOLD[way]])
        return follow(patient, api, body, seen, version)
    return answer


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("way", TOLD)
@EACH
def test_an_error_event_of_the_engine_is_the_only_one(
        then: Then, api: Api, version: str, count: int, way: str) -> None:
    """What the engine says itself is passed on as it is, and nothing is said after it."""
    body = b"".join(api.events(count)) + api.error
    answer = then(api, version, body, way)
    assert outcome(api, answer) == IN_BAND
    assert answer.body == body


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("way", TOLD)
@EACH
def test_a_stream_that_is_complete_is_a_success(
        then: Then, api: Api, version: str, count: int, way: str) -> None:
    """After the end that its API knows, it does not matter how the connection goes on."""
    body = b"".join(api.events(count)) + api.end
    answer = then(api, version, body, way)
    assert outcome(api, answer) == SUCCESS
    assert answer.body == body


@pytest.mark.parametrize("api", [CHAT, COMPLETIONS, MESSAGES], ids=named)
def test_what_comes_after_the_length_belongs_to_nobody(
        patient: GatewayProcess, engine: RawEngine, api: Api) -> None:
    """Bytes beyond the announced length are not the beginning of the next answer."""
    body, sent = api.events(1)[0] + api.end, threading.Event()
    stray = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    engine.answer_with(
        [send(head_for("length", len(body)) + body + stray), mark(sent)],
        [send(head_for("length", len(body)) + body)])
    for _ in range(2):
        answer = post(patient.url, api.path, api.body(stream=True))
        assert sent.wait(10)
        assert answer.body == body


@pytest.mark.parametrize("break_off", [reset, close], ids=["reset", "close"])
def test_a_failed_stream_leaves_no_trace_on_the_next(
        patient: GatewayProcess, engine: RawEngine, break_off: Step) -> None:
    """The client's connection is still good after an error in a stream."""
    whole = [send(head_for("length", len(STOP + DONE)) + STOP + DONE)]
    broken = [send(head_for("chunked") + framed("chunked", ev("1"))), break_off]
    engine.answer_with(broken, whole, broken, whole)
    with RawClient(patient.url) as client:
        found = [outcome(CHAT, ask(client)) for _ in range(4)]
    assert found[1::2] == [SUCCESS, SUCCESS]
    assert set(found[0::2]) <= {IN_BAND, REFUSED}
