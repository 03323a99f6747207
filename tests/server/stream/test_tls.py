"""The gateway behind the lines for TLS of the nginx configuration that comes with it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from tests.fakes.engine_steps import COMPLETION, reply
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import Gates
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT
from tests.server.stream.asking import ask, read_up_to
from tests.server.stream.shipped_nginx import TlsNginx

pytestmark = pytest.mark.nginx


@pytest.fixture(scope="module")
def secure(patient: GatewayProcess,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsNginx]:
    """nginx that speaks TLS alone, before the patient gateway."""
    with TlsNginx(tmp_path_factory.mktemp("tls"), patient.port) as process:
        yield process


@pytest.fixture
def client(secure: TlsNginx) -> Iterator[RawClient]:
    """A connection that trusts the certificate, by the name that stands in it."""
    context = ssl.create_default_context(cafile=str(secure.certificate))
    with RawClient(secure.url) as plain:
        plain.socket = context.wrap_socket(plain.socket, server_hostname="localhost")
        yield plain


def test_calls_go_through(client: RawClient, engine: RawEngine) -> None:
    """One after another on one connection, by a protocol of today."""
    assert isinstance(client.socket, ssl.SSLSocket)
    assert client.socket.version() in ("TLSv1.2", "TLSv1.3")
    for _ in range(2):
        assert ask(client, stream=False).body == COMPLETION
    assert len(engine.requests) == 2


def test_streams_arrive_event_by_event(client: RawClient, engine: RawEngine) -> None:
    """The engine sends each event only after the client has the one before."""
    gates = Gates("chunked", [*CHAT.events(4), CHAT.end])
    engine.answer_with(gates.script)
    answer = ask(client)
    for number, piece in enumerate(gates.pieces):
        assert read_up_to(answer, len(piece)) == piece
        gates.seen(number)
    assert answer.body == b"".join(gates.pieces) and not answer.cut


def test_a_client_without_tls_is_refused_in_json(secure: TlsNginx, engine: RawEngine) -> None:
    """In the shape of the API that it asked for, and no engine sees its key."""
    engine.answer_with(reply())
    with RawClient(secure.url) as plain:
        answer = ask(plain, stream=False).whole()
    assert answer.status == 400
    assert answer.json()["error"]["message"] == "the request is not valid HTTP"
    assert not engine.requests
