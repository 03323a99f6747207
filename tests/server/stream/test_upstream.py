"""Everything below /upstream/<model>/ is that model's engine, nothing read and nothing changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.fakes.engine_steps import close, hold, reply, reset, send
from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import DONE, STOP, Gates, ev, framed, head_for
from tests.server.calls import CHAT, openai_error
from tests.server.gateway_process import GatewayProcess
from tests.server.stream import apis
from tests.server.stream.asking import read_up_to
from tests.server.stream.conftest import LONG_NAME
from tests.server.stream.outcome import IN_BAND, outcome

OWN = b'{"build_info":"b1","total_slots":4}'
QUOTED = LONG_NAME.replace("/", "%2F").replace(":", "%3A")
NAMES = ["m", "short", "M", "m:latest", "%6d", LONG_NAME, QUOTED, QUOTED.lower(),
         LONG_NAME.replace(":", "%3a"), LONG_NAME.replace("/", "%2f"), LONG_NAME.lower()]
PATHS = ["/props", "/", "/v1/chat/completions", "/a/b/c", "/lora-adapters?id=1&x=%2F&x",
         "/with%20space", "/a%2Fb%3Ac", "//two//slashes//", "/end/", "/%E5%8C%97", "/;p=1,2",
         "/upstream/m/props", "/~x/!$&'()*+,;=:@", "/props?", "/q?a=b?c=/d", "/m/m"]


@pytest.fixture
def probed(engine: RawEngine) -> Iterator[RawEngine]:
    """An engine that answers whatever is asked."""
    before, engine.probe_script = engine.probe_script, reply(200, OWN)
    engine.answer_with(reply(200, OWN))
    yield engine
    engine.probe_script = before


def lines_of(engine: RawEngine) -> list[str]:
    """The request lines that the engine got."""
    return [request.line for request in engine.probes + engine.requests]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_names_are_understood_encoded_or_not(
        gateway: GatewayProcess, probed: RawEngine, name: str, method: str) -> None:
    """A name may have slashes and colons, its own spelling, or an alias."""
    answer = fetch(gateway.url, method, f"/upstream/{name}/props?a=1")
    assert (answer.status, answer.body) == (200, OWN)
    assert lines_of(probed) == [f"{method} /props?a=1 HTTP/1.1"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", ["m", QUOTED, LONG_NAME])
def test_paths_are_passed_on_as_they_are(
        gateway: GatewayProcess, probed: RawEngine, name: str, path: str) -> None:
    """What is encoded stays encoded, what is not stays so, and the query comes along."""
    assert fetch(gateway.url, "GET", f"/upstream/{name}{path}").status == 200
    assert lines_of(probed) in ([f"GET {path} HTTP/1.1"],
                                [f"GET {path.rstrip('?')} HTTP/1.1"])


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND",
                                    "M-SEARCH"])
@pytest.mark.parametrize("body", [None, b"", b"\x00\xff no JSON {", b'{"model":"gone"}'],
                         ids=["none", "empty", "bytes", "json"])
def test_method_and_body_are_passed_on(
        gateway: GatewayProcess, probed: RawEngine, method: str, body: bytes | None) -> None:
    """Any method, any bytes, with their own type."""
    headers = [("Content-Type", "application/x-own; a=b")] if body else []
    answer = fetch(gateway.url, method, "/upstream/m/lora-adapters", body, headers)
    assert (answer.status, answer.body) == (200, OWN)
    [request] = probed.probes + probed.requests
    assert request.line == f"{method} /lora-adapters HTTP/1.1"
    assert request.body == (body or b"")
    assert request.all("Content-Type") == [value for _, value in headers]


def test_head_has_no_body(gateway: GatewayProcess, probed: RawEngine) -> None:
    """The engine is asked by HEAD, and what it says of the body is passed on."""
    probed.probe_script = send(b"HTTP/1.1 200 OK\r\nContent-Length: 35\r\nX-Own: 1\r\n\r\n")
    with RawClient(gateway.url) as client:
        for _ in range(2):
            answer = client.request("HEAD", "/upstream/m/props")
            assert (answer.status, answer.body, answer.header("X-Own")) == (200, b"", "1")
    assert lines_of(probed) == ["HEAD /props HTTP/1.1"] * 2


def test_a_body_in_chunks(gateway: GatewayProcess, probed: RawEngine) -> None:
    """The engine gets it with its length."""
    with RawClient(gateway.url) as client:
        client.send(b"PUT /upstream/m/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert client.answer().status == 200
    assert probed.probes[0].body == b"abcde"
    assert probed.probes[0].all("Content-Length") == ["5"]


@pytest.mark.parametrize("status", [200, 201, 202, 206, 301, 302, 303, 307, 308, 400, 401, 404, 405,
                                    409, 418, 429, 500, 501, 502, 503, 504, 599])
@pytest.mark.parametrize("kind", ["application/json", "text/html", "text/plain"])
def test_answers_are_passed_back_as_they_are(
        gateway: GatewayProcess, probed: RawEngine, status: int, kind: str) -> None:
    """Statuses, pages and redirects too: nothing is followed and nothing put in other words."""
    headers = [("Content-Type", kind), ("Location", "/elsewhere?x=1"), ("Retry-After", "3"),
               ("X-Own", "a, b"), ("ETag", '"x"')]
    probed.answer_with(reply(status, b"<p>own</p>", headers))
    answer = fetch(gateway.url, "POST", "/upstream/m/x", b"")
    assert (answer.status, answer.body) == (status, b"<p>own</p>")
    assert [answer.all(name) for name, _ in headers] == [[value] for _, value in headers]
    assert len(probed.requests) == 1


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body(gateway: GatewayProcess, probed: RawEngine, status: int) -> None:
    """The client's connection is still good after one."""
    probed.answer_with(send(b"HTTP/1.1 %d Nothing\r\n\r\n" % status))
    with RawClient(gateway.url) as client:
        for _ in range(2):
            assert client.request("POST", "/upstream/m/x", [], b"").whole().status == status


@pytest.mark.parametrize("name", ["nope", "org/nope:x", "org%2Fnope%3Ax", "%00"])
def test_an_unknown_model_is_a_404(gateway: GatewayProcess, probed: RawEngine, name: str) -> None:
    """As everywhere."""
    answer = fetch(gateway.url, "GET", f"/upstream/{name}/props")
    assert answer.status == 404
    assert openai_error(answer)["code"] == "model_not_found"
    assert lines_of(probed) == []


@pytest.mark.parametrize("path", ["/upstream", "/upstream/", "/upstream//props"])
def test_no_model_is_a_404(gateway: GatewayProcess, probed: RawEngine, path: str) -> None:
    """There is no default model in a path."""
    answer = fetch(gateway.url, "GET", path)
    assert answer.status == 404
    openai_error(answer)
    assert lines_of(probed) == []


def test_a_dead_engine_is_a_502(gateway: GatewayProcess) -> None:
    """Nothing of an engine is there to be passed back."""
    answer = fetch(gateway.url, "GET", "/upstream/gone/props")
    assert (answer.status, openai_error(answer)["code"]) == (502, "engine_unavailable")


@pytest.mark.parametrize("step", [close, reset], ids=["close", "reset"])
def test_an_engine_that_breaks_off_is_a_502(
        gateway: GatewayProcess, probed: RawEngine, step: Step) -> None:
    """Nor of one that says half of it."""
    probed.answer_with([send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             b"Content-Length: 99\r\n\r\n{"), step])
    answer = fetch(gateway.url, "POST", "/upstream/m/x", b"")
    assert (answer.status, openai_error(answer)["code"]) == (502, "upstream_error")


def test_streams_arrive_piece_by_piece(gateway: GatewayProcess, engine: RawEngine) -> None:
    """As they do at their own address."""
    gates = Gates("chunked", [ev("1"), ev("2"), STOP, DONE])
    engine.answer_with(gates.script)
    with RawClient(gateway.url) as client:
        answer = client.request("POST", f"/upstream/m{CHAT}", [], apis.CHAT.body(stream=True))
        for number, piece in enumerate(gates.pieces):
            assert read_up_to(answer, len(piece)) == piece
            gates.seen(number)
        assert answer.body == b"".join(gates.pieces)
    assert answer.all("X-Accel-Buffering") == ["no"]


def test_a_stream_that_breaks_off_says_so(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A client of a stream sees that it was not all, here too."""
    seen = threading.Event()
    engine.answer_with([send(head_for("chunked") + framed("chunked", ev("1"))), hold(seen), reset])
    with RawClient(gateway.url) as client:
        answer = client.request("POST", f"/upstream/m{CHAT}", [], apis.CHAT.body(stream=True))
        assert read_up_to(answer, len(ev("1"))) == ev("1")
        seen.set()
        assert outcome(apis.CHAT, answer) == IN_BAND


def test_a_key_of_the_clients_stays_here(gateway: GatewayProcess, probed: RawEngine) -> None:
    """Nothing changed does not mean that the engine learns who asked."""
    fetch(gateway.url, "GET", "/upstream/m/props", None, [
        ("Authorization", "Bearer K"), ("Cookie", "a=K"), ("x-api-key", "K")])
    assert not [field for field in probed.probes[0].headers if field[1].endswith("K")]
