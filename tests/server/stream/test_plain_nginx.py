"""The gateway behind an nginx that was told nothing but its address: HTTP/1.0, and buffering on."""

from __future__ import annotations

import threading

import pytest

from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import FRAMINGS, Gates
from tests.server.conftest import StartNginx
from tests.server.gateway_process import GatewayProcess
from tests.server.nginx_process import NginxProcess
from tests.server.stream.apis import CHAT, MESSAGES, STREAMING, Api, named
from tests.server.stream.asking import HTTP_10, HTTP_11, ask, read_up_to
from tests.server.stream.leaving import LEAVING, MOMENTS, Leave, Moment
from tests.server.stream.outcome import IN_BAND, SUCCESS, outcome
from tests.server.stream.stream_faults import FAULTS, Fault

pytestmark = pytest.mark.nginx
SOON = 1.0


@pytest.fixture(scope="module")
def plain(patient: GatewayProcess, start_nginx: StartNginx) -> NginxProcess:
    """nginx with `proxy_pass` alone."""
    return start_nginx(f"location / {{ proxy_pass {patient.url}; }}")


@pytest.mark.parametrize("version", [HTTP_11, HTTP_10])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("api", STREAMING, ids=named)
def test_streams_arrive_event_by_event(
        plain: NginxProcess, engine: RawEngine, api: Api, framing: str, version: str) -> None:
    """The gateway switches the buffering off."""
    gates = Gates(framing, [*api.events(5), api.end])
    engine.answer_with(gates.script)
    with RawClient(plain.url) as client:
        answer = ask(client, api, version)
        for number, piece in enumerate(gates.pieces):
            assert read_up_to(answer, len(piece)) == piece
            gates.seen(number)
        assert outcome(api, answer) == SUCCESS
    assert answer.body == b"".join(gates.pieces)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("api", [CHAT, MESSAGES], ids=named)
def test_an_error_in_a_stream_is_seen(
        plain: NginxProcess, engine: RawEngine, api: Api, fault: Fault) -> None:
    """A body without length or chunks ends with the error event, not like a whole one."""
    seen, sent = threading.Event(), fault.sent(api, 2)
    engine.answer_with(fault.script(api, 2, seen))
    with RawClient(plain.url, timeout=5) as client:
        answer = ask(client, api)
        assert read_up_to(answer, len(sent)).startswith(sent)
        seen.set()
        assert outcome(api, answer) == IN_BAND


@pytest.mark.parametrize("leave", [LEAVING["close"], LEAVING["reset"]], ids=["close", "reset"])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_client_that_leaves_is_noticed(
        plain: NginxProcess, engine: RawEngine, moment: Moment, leave: Leave) -> None:
    """As with HTTP/1.1."""
    with moment.reached(plain.url, engine, CHAT) as (client, connection):
        leave(client)
        assert connection.peer_closed.wait(SOON)
