"""A stream ends once: well, or with one error that no client can miss; never both or neither."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.fakes.engine_steps import close, hold, mark, reset, send, silence
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, STOP, ev, framed, head_for
from tests.server.calls import post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, COMPLETIONS, MESSAGES, STREAMING, Api, named
from tests.server.stream.asking import HTTP_10, HTTP_11, ask, read_up_to
from tests.server.stream.conftest import settings_for
from tests.server.stream.outcome import IN_BAND, REFUSED, SUCCESS, last_error, outcome, refusal
from tests.server.stream.stream_faults import FAULTS, LAST_CHUNK, TOLD, Fault


PATIENCE = 2.0  # seconds; an answer that is still not over then never ends
# Every API, and for two of them the older HTTP as well.
ASKED = [*((api, HTTP_11) for api in STREAMING), (CHAT, HTTP_10), (MESSAGES, HTTP_10)]
EACH = pytest.mark.parametrize(
    ("api", "version"), ASKED, ids=[f"{api.id}-{version[-3:]}" for api, version in ASKED])


@pytest.fixture(scope="module")
def hasty(shared_engine: RawEngine, stream_home: RegistryHome,
          tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that gives up on a silent engine soon, as half of this table is silent."""
    settings = settings_for(shared_engine, stream_home, {}, **{"read-timeout": "400ms"})
    with GatewayProcess(tmp_path_factory.mktemp("hasty"), settings) as process:
        yield process


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
        hasty: GatewayProcess, engine: RawEngine, api: Api, version: str, fault: Fault,
        count: int) -> None:
    """However an engine breaks off, its events arrive, then one error, then a clean end."""
    seen = threading.Event()
    engine.answer_with(fault.script(api, count, seen))
    sent = fault.sent(api, count)
    answer = follow(hasty, api, sent, seen, version)
    found = outcome(api, answer)
    if found == REFUSED:
        assert not sent, "the client had seen a stream"
        assert answer.status == (504 if fault.silent else 502)
        said = refusal(api, answer)
    else:
        assert found == IN_BAND
        assert answer.body.startswith(sent) and b"HTTP/1.1 500" not in answer.body
        said = last_error(api, answer)
    if not api.anthropic:
        assert said["code"] == ("engine_timeout" if fault.silent else "upstream_error")


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("steps", TOLD.values(), ids=TOLD)
@EACH
def test_an_error_event_of_the_engine_is_the_only_one(
        hasty: GatewayProcess, engine: RawEngine, api: Api, version: str,
        steps: list[Step], count: int) -> None:
    """What the engine says itself is passed on as it is, and nothing is said after it."""
    body = b"".join(api.events(count)) + api.error
    seen = threading.Event()
    engine.answer_with(
        [send(head_for("chunked")), send(framed("chunked", body)), hold(seen), *steps])
    answer = follow(hasty, api, body, seen, version)
    assert outcome(api, answer) == IN_BAND
    assert answer.body == body


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("steps", [[LAST_CHUNK], [reset], [close], [send(b"ZZ\r\n"), close],
                                   [silence]], ids=["end", "reset", "close", "broken", "hang"])
@EACH
def test_a_stream_that_is_complete_is_a_success(
        hasty: GatewayProcess, engine: RawEngine, api: Api, version: str,
        steps: list[Step], count: int) -> None:
    """After the end that its API knows, it does not matter how the connection goes on."""
    body = b"".join(api.events(count)) + api.end
    seen = threading.Event()
    engine.answer_with(
        [send(head_for("chunked")), send(framed("chunked", body)), hold(seen), *steps])
    answer = follow(hasty, api, body, seen, version)
    assert outcome(api, answer) == SUCCESS
    assert answer.body == body


@pytest.mark.parametrize("api", [CHAT, COMPLETIONS, MESSAGES], ids=named)
def test_what_comes_after_the_length_belongs_to_nobody(
        hasty: GatewayProcess, engine: RawEngine, api: Api) -> None:
    """Bytes beyond the announced length are not the beginning of the next answer."""
    body, sent = api.events(1)[0] + api.end, threading.Event()
    stray = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    engine.answer_with(
        [send(head_for("length", len(body)) + body + stray), mark(sent)],
        [send(head_for("length", len(body)) + body)])
    for _ in range(2):
        answer = post(hasty.url, api.path, api.body(stream=True))
        assert sent.wait(10)
        assert answer.body == body


@pytest.mark.parametrize("break_off", [reset, close], ids=["reset", "close"])
def test_a_failed_stream_leaves_no_trace_on_the_next(
        hasty: GatewayProcess, engine: RawEngine, break_off: Step) -> None:
    """The client's connection is still good after an error in a stream."""
    whole = [send(head_for("length", len(STOP + DONE)) + STOP + DONE)]
    broken = [send(head_for("chunked") + framed("chunked", ev("1"))), break_off]
    engine.answer_with(broken, whole, broken, whole)
    with RawClient(hasty.url) as client:
        found = [outcome(CHAT, ask(client)) for _ in range(4)]
    assert found[1::2] == [SUCCESS, SUCCESS]
    assert set(found[0::2]) <= {IN_BAND, REFUSED}
