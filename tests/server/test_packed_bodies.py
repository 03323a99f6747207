"""Request bodies that are packed: the engine gets them unpacked, a bomb costs nobody anything."""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import CHAT, HELLO, JSON, error_text, openai_error, post, to_bytes
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 2**20
LIMIT = MIB
BODY = to_bytes({**HELLO, "seed": 9007199254740993, "stream": False})
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "zstd": zstd.compress}
EACH = pytest.mark.parametrize("coding", PACKERS)


@pytest.fixture(scope="module")
def narrow(shared_engine: RawEngine, shared_home: RegistryHome, start_gateway: StartGateway,
           ) -> GatewayProcess:
    """A gateway that takes bodies of 1 MiB."""
    return start_gateway({
        "server": {"max-body": "1MiB"},
        "loop": {"home": str(shared_home.path),
                 "engines": [{"url": shared_engine.url, "models": ["m"]}]}})


def send(gateway: GatewayProcess, path: str, coding: str, raw: bytes) -> RawAnswer:
    """POST a packed body."""
    return post(gateway.url, path, raw, [*JSON, ("Content-Encoding", coding)])


def sized(size: int) -> bytes:
    """A request body of exactly this size."""
    frame = to_bytes({**HELLO, "x": ""})
    return frame[:-2] + b"a" * (size - len(frame)) + frame[-2:]


@EACH
@pytest.mark.parametrize("path", [
    CHAT, "/v1/embeddings", "/completion", "/upstream/m/anything", "/v1/messages"])
def test_the_engine_gets_the_plain_body(
        narrow: GatewayProcess, engine: RawEngine, path: str, coding: str) -> None:
    """Byte for byte, with its length, and without a word of how it came."""
    assert send(narrow, path, coding, PACKERS[coding](BODY)).status == 200
    [request] = engine.requests
    assert request.body == BODY
    assert request.all("Content-Length") == [str(len(BODY))]
    assert request.all("Content-Encoding") == []


@EACH
@pytest.mark.parametrize("path", ["/api/chat", "/api/show", "/api/generate"])
def test_ollamas_requests_may_be_packed_too(
        narrow: GatewayProcess, engine: RawEngine, path: str, coding: str) -> None:
    """The same holds for every API."""
    body = to_bytes({**json.loads(BODY), "prompt": "x"})
    assert send(narrow, path, coding, PACKERS[coding](body)).status == 200


@EACH
@pytest.mark.parametrize("path", [CHAT, "/api/show"])
@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (9 * LIMIT, 413)])
def test_the_limit_is_that_of_the_plain_body(
        narrow: GatewayProcess, engine: RawEngine, path: str, coding: str, size: int,
        status: int) -> None:
    """However little of it comes over the wire."""
    raw = PACKERS[coding](sized(size))
    assert len(raw) < 50_000
    answer = send(narrow, path, coding, raw)
    assert answer.status == status
    if status == 413:
        assert error_text(answer, path) == f"the request body is larger than {LIMIT} bytes"
        assert engine.connections == []


@pytest.mark.parametrize("path", [CHAT, "/api/chat", "/upstream/m/x", "/v1/messages"])
@pytest.mark.parametrize("coding", ["br", "deflate", "compress", "gzip, gzip", "gzip, zstd", "x"])
def test_other_codings_are_a_415(
        narrow: GatewayProcess, engine: RawEngine, path: str, coding: str) -> None:
    """It says which are known."""
    answer = send(narrow, path, coding, gzip.compress(BODY))
    assert (answer.status, answer.header("Accept-Encoding")) == (415, "gzip, zstd")
    if path == CHAT:
        error = openai_error(answer)
        assert (error["type"], error["code"]) == ("invalid_request_error", "unsupported_encoding")
    assert engine.connections == []


@EACH
@pytest.mark.parametrize("path", [CHAT, "/api/chat"])
def test_what_is_not_packed_as_it_says_is_a_400(
        narrow: GatewayProcess, engine: RawEngine, path: str, coding: str) -> None:
    """Plain bytes, half of a body, or something behind it."""
    good = PACKERS[coding](BODY)
    for raw in (BODY, good[:-3], good[:len(good) // 2], good + b"x", b"\xff" * 100):
        answer = send(narrow, path, coding, raw)
        assert answer.status == 400 and "Content-Encoding" in error_text(answer, path)
    assert engine.connections == []


def peak(gateway: GatewayProcess) -> int:
    """The most memory that the worker ever had, in bytes."""
    [pid] = gateway.workers()
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def zeros(size: int) -> bytes:
    """A zstd frame of so many zeros."""
    packer = zstd.ZstdCompressor()
    return packer.compress(bytes(size)) + packer.flush()


BOMBS = {
    "gzip": ("gzip", gzip.compress(bytes(100 * MIB), 1)), "zstd": ("zstd", zeros(100 * MIB)),
    "gzip_parts": ("gzip", gzip.compress(bytes(MIB // 2)) * 400),
    "empty_parts": ("gzip", gzip.compress(b"") * 50_000),
    "zstd_parts": ("zstd", zeros(MIB // 2) * 400),
}


@pytest.mark.parametrize(("coding", "raw"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_dropped_at_the_limit(
        narrow: GatewayProcess, engine: RawEngine, coding: str, raw: bytes) -> None:
    """It costs neither the memory nor the time that it was made for."""
    assert len(raw) <= LIMIT
    before, started = peak(narrow), time.monotonic()
    for path in (CHAT, "/api/chat", "/upstream/m/x"):
        assert send(narrow, path, coding, raw).status in (400, 413)
    assert time.monotonic() - started < 10
    assert peak(narrow) - before < 40 * MIB
    assert engine.connections == []


IMAGE = {"type": "image_url", "image_url": {"url": "http://10.0.0.1/x.png"}}
SEEN = [{"role": "user", "content": [{"type": "text", "text": "hi"}, IMAGE]}]


@pytest.mark.parametrize("path", [CHAT, "/chat/completions", "/v1/messages", "/v1/embeddings"])
def test_media_elsewhere_are_refused(narrow: GatewayProcess, engine: RawEngine, path: str) -> None:
    """The engine is not asked; the answer has the path and names the setting."""
    answer = post(narrow.url, path, {"model": "m", "messages": SEEN, "max_tokens": 5})
    assert answer.status == 400 and b"server.allow-remote-media" in answer.body
    if path != "/v1/messages":
        assert openai_error(answer)["param"] == "messages[0].content[1].image_url.url"
    assert engine.connections == []
    # Straight to the engine nothing is looked at.
    assert post(narrow.url, f"/upstream/m{path}", {"messages": SEEN}).status == 200


def test_media_elsewhere_can_be_allowed(start_gateway: StartGateway, engine: RawEngine,
                                        tmp_path: Path) -> None:
    """Then the engine gets the request as it is."""
    gateway = start_gateway({"server": {"allow-remote-media": True}, "loop": {
        "home": str(tmp_path), "engines": [{"url": engine.url, "models": ["m"]}]}})
    body = to_bytes({"model": "m", "messages": SEEN})
    assert post(gateway.url, CHAT, body).status == 200
    assert engine.requests[0].body == body
