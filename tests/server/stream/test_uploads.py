"""Forms with files: routed by the field `model`, and otherwise passed through byte for byte."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from tests.fakes.deaf_engine import DeafEngine, take
from tests.fakes.engine_steps import COMPLETION, whole
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine, RawRequest
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, stream
from tests.server.calls import openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.asking import in_background
from tests.server.stream.conftest import LONG_NAME, settings_for

PATHS = ["/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/edits",
         "/v1/images/variations", "/v1/files", "/audio/transcriptions"]
BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"
# A file that holds what looks like a form, a field and a boundary, and is none of it.
TRICKY = (b'\x00\xff\r\n\r\nContent-Disposition: form-data; name="model"\r\n\r\ngone\r\n--'
          b'\r\n--other\r\n{"model":"gone"}\r\n-' + BOUNDARY.encode()[:-1] + b"\r\n")


def part(name: str, value: bytes, more: str = "") -> bytes:
    """One field of a form."""
    return b'Content-Disposition: form-data; name="%b"%b\r\n\r\n%b' % (
        name.encode(), more.encode(), value)


def file(data: bytes = TRICKY) -> bytes:
    """A field that is a file."""
    return part("file", data, '; filename="speech \u00e9.wav"\r\nContent-Type: audio/wav')


def form(*parts: bytes, boundary: str = BOUNDARY) -> bytes:
    """A multipart/form-data body (RFC 7578) of these parts."""
    line = b"--" + boundary.encode()
    return b"".join(line + b"\r\n" + each + b"\r\n" for each in parts) + line + b"--\r\n"


def upload(gateway: GatewayProcess, body: bytes, path: str = PATHS[0],
           boundary: str = BOUNDARY) -> RawAnswer:
    """POST a form."""
    return post(gateway.url, path, body,
                [("Content-Type", f"multipart/form-data; boundary={boundary}")])


def forwarded(gateway: GatewayProcess, engine: RawEngine, body: bytes,
              path: str = PATHS[0], boundary: str = BOUNDARY) -> RawRequest:
    """What the engine got of a form that was accepted."""
    answer = upload(gateway, body, path, boundary)
    assert (answer.status, answer.body) == (200, COMPLETION), answer.body
    [request] = engine.requests
    assert request.path == path
    assert request.all("Content-Type") == [f"multipart/form-data; boundary={boundary}"]
    assert request.all("Content-Length") == [str(len(request.body))]
    return request


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("first", [True, False], ids=["model_first", "model_last"])
def test_a_form_is_passed_through(
        gateway: GatewayProcess, engine: RawEngine, path: str, first: bool) -> None:
    """The same bytes, wherever the model stands and whatever the file holds."""
    parts = [part("model", b"m"), part("language", b"de"), file()]
    body = form(*(parts if first else reversed(parts)))
    assert forwarded(gateway, engine, body, path).body == body


@pytest.mark.parametrize("boundary", [
    "x", "a" * 70, "'()+_-.", '"quoted boundary"', '"with:colon/slash=?,"'])
def test_any_boundary_will_do(gateway: GatewayProcess, engine: RawEngine, boundary: str) -> None:
    """Quoted or not, of any length that RFC 2046 allows."""
    body, expected = (
        form(file(b"data"), part("model", name), part("a", b"b"), boundary=boundary.strip('"'))
        for name in (b"short", b"m"))
    assert forwarded(gateway, engine, body, boundary=boundary).body == expected


MODELS: dict[str, bytes] = {
    "plain": part("model", b"%b"),
    "unquoted": b"Content-Disposition: form-data; name=model\r\n\r\n%b",
    "lower_case": b'content-disposition:form-data;name="model"\r\n\r\n%b',
    "upper_case": b'CONTENT-DISPOSITION: FORM-DATA; NAME="model"\r\n\r\n%b',
    "with_type": b'Content-Disposition: form-data; name="model"\r\n'
                 b"Content-Type: text/plain; charset=utf-8\r\n\r\n%b",
    "type_first": b"Content-Type: text/plain\r\n"
                  b'Content-Disposition: form-data; name="model"\r\n\r\n%b',
}


@pytest.mark.parametrize("field", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("name", "sent"), [("short", "m"), ("m", "m"), (LONG_NAME, LONG_NAME),
                                            (LONG_NAME.upper(), LONG_NAME)])
def test_an_alias_replaces_the_models_value_only(
        gateway: GatewayProcess, engine: RawEngine, field: bytes, name: str, sent: str) -> None:
    """However the field is written, the engine gets the registry's name in the same place."""
    template = form(part("prompt", b"short"), file(), b"\0", file(b"short model"))
    body = template.replace(b"\0\r\n", field.replace(b"%b", name.encode()) + b"\r\n")
    expected = template.replace(b"\0\r\n", field.replace(b"%b", sent.encode()) + b"\r\n")
    assert forwarded(gateway, engine, body).body == expected


@pytest.mark.parametrize("pair", [
    ("plain", "plain"), ("plain", "unquoted"), ("plain", "lower_case"), ("with_type", "plain"),
    ("upper_case", "type_first")])
def test_two_models_are_refused(
        gateway: GatewayProcess, engine: RawEngine, pair: tuple[str, str]) -> None:
    """One may be the gate's and the other the engine's: a 400, and the engine sees nothing."""
    first, second = (MODELS[kind] for kind in pair)
    body = form(first.replace(b"%b", b"m"), file(), second.replace(b"%b", b"gone"))
    answer = upload(gateway, body)
    assert answer.status == 400
    assert openai_error(answer)["type"] == "invalid_request_error"
    assert engine.requests == []


@pytest.mark.parametrize("parts", [
    [file()], [file(), part("Model", b"m")], [part("model", b""), file()],
    [part("model", b"  "), file()], [part("models", b"m"), part("xmodel", b"m"), file()],
    [part("x", b"y", '; filename="; name=\\"model\\""')], []],
    ids=["none", "other_case", "empty", "blank", "other_names", "in_a_file_name", "no_parts"])
def test_no_model_is_a_400(
        gateway: GatewayProcess, engine: RawEngine, parts: list[bytes]) -> None:
    """Where there is no default model."""
    answer = upload(gateway, form(*parts))
    assert answer.status == 400
    assert openai_error(answer)["param"] == "model"
    assert engine.requests == []


def test_an_unknown_model_is_a_404(gateway: GatewayProcess, engine: RawEngine) -> None:
    """As in a JSON body."""
    answer = upload(gateway, form(part("model", b"nope"), file()))
    assert (answer.status, openai_error(answer)["code"]) == (404, "model_not_found")
    assert engine.requests == []


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; charset=x",
                                          'multipart/form-data; boundary=""'])
def test_a_form_without_a_boundary_is_a_400(
        gateway: GatewayProcess, engine: RawEngine, content_type: str) -> None:
    """Nobody can take it apart."""
    answer = post(gateway.url, PATHS[0], form(part("model", b"m")),
                  [("Content-Type", content_type)])
    assert answer.status == 400
    openai_error(answer)
    assert engine.requests == []


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("name", ["m", "short"])
def test_thirty_megabytes(
        gateway: GatewayProcess, engine: RawEngine, framing: str, name: str) -> None:
    """A long recording arrives whole, however the client frames it."""
    data = os.urandom(30_000_000)
    body = form(file(data), part("model", name.encode()))
    head = [("Host", "x"), ("Content-Type", f"multipart/form-data; boundary={BOUNDARY}")]
    with RawClient(gateway.url) as client:
        if framing == "length":
            answer = client.request("POST", PATHS[0], head[1:], body)
        else:
            lines = [f"POST {PATHS[0]} HTTP/1.1", *(f"{key}: {value}" for key, value in head)]
            client.send("\r\n".join([*lines, "Transfer-Encoding: chunked\r\n\r\n"]).encode())
            for at in range(0, len(body), 1_000_000):
                piece = body[at:at + 1_000_000]
                client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            client.send(b"0\r\n\r\n")
            answer = client.answer()
        assert answer.status == 200
    [request] = engine.requests
    assert request.body == form(file(data), part("model", b"m"))
    assert request.all("Content-Length") == [str(len(request.body))]


def test_a_transcription_can_be_a_stream(gateway: GatewayProcess, engine: RawEngine) -> None:
    """What an engine streams for a form is relayed like any other stream."""
    engine.answer_with(stream("chunked", [b'data: {"type":"transcript.text.delta"}\n\n', DONE]))
    answer = upload(gateway, form(file(), part("model", b"m"), part("stream", b"true")))
    assert answer.body == b'data: {"type":"transcript.text.delta"}\n\n' + DONE
    assert answer.all("X-Accel-Buffering") == ["no"]


@pytest.fixture
def deaf() -> Iterator[DeafEngine]:
    """An engine that takes as little at a time as the test wants."""
    with DeafEngine() as engine:
        yield engine


def test_an_engine_may_take_its_time_to_read(
        shared_engine: RawEngine, stream_home: RegistryHome, deaf: DeafEngine,
        tmp_path_factory: pytest.TempPathFactory) -> None:
    """The connect timeout is for connecting: an engine that reads on is not silent."""
    settings = settings_for(shared_engine, stream_home, {}, **{
        "connect-timeout": "300ms", "read-timeout": "5s"})
    settings["loop"]["engines"].append({"url": deaf.url, "models": ["deaf"]})
    body = form(file(os.urandom(20_000_000)), part("model", b"deaf"))
    statuses = []
    with GatewayProcess(tmp_path_factory.mktemp("slow"), settings) as gateway:
        asking = threading.Thread(target=lambda: statuses.append(upload(gateway, body).status))
        with in_background(asking):
            sock, taken = deaf.accept(), 0
            while piece := take(sock, min(2_000_000, len(body) - taken)):
                taken += len(piece)
                time.sleep(0.1)  # ten times: longer than the connect timeout in all
            sock.sendall(whole())
    assert taken >= len(body) and statuses == [200]
