"""Keys as clients really send them: bytes in headers, whatever they are, through a real server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.keys import hash_of
from tests.fakes.engine_steps import reply
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import CHAT, HELLO, JSON, get, ollama_error, openai_error, post, to_bytes
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess

KEY, UNICODE = "sk-alice-0123456789", "clé-“secrète”-0123456789"
Headers = list[tuple[str, str]]


@pytest.fixture(scope="module")
def guarded(shared_engine: RawEngine, shared_home: RegistryHome, start_gateway: StartGateway,
            tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway on every address of this machine, whose keys are in a file of their own."""
    directory = tmp_path_factory.mktemp("guarded")
    keys = directory / "keys.yml"
    keys.write_text(json.dumps([
        {"name": "alice", "sha256": hash_of(KEY)}, {"name": "clé", "sha256": hash_of(UNICODE)},
        {"name": "root", "sha256": hash_of("root"), "scopes": ["infer", "admin", "metrics"]}]))
    keys.chmod(0o600)
    return start_gateway({
        "server": {"address": "0.0.0.0"}, "keys-file": str(keys),
        "loop": {"home": str(shared_home.path),
                 "engines": [{"url": shared_engine.url, "models": ["m"]}]}})


def utf8(text: str) -> str:
    """A text whose bytes go out as UTF-8; the client sends Latin-1."""
    return text.encode("utf-8").decode("latin-1")


WRONG: dict[str, Headers] = {
    "none": [], "empty": [("Authorization", "")], "bearer": [("Authorization", "Bearer")],
    "spaces": [("Authorization", "Bearer   ")], "basic": [("Authorization", "Basic dTpw")],
    "latin": [("Authorization", "Bearer caf\xe9")],
    "utf8": [("Authorization", utf8("Bearer café"))],
    "quotes": [("Authorization", utf8(f"Bearer “{KEY}”"))],
    "unicode_as_latin": [("Authorization", "Bearer cl\xe9")],
    "all_bytes": [("x-api-key", "".join(map(chr, range(128, 256))))],
    "long": [("Authorization", "Bearer " + "x" * 100_000)],
    "long_api": [("x-api-key", "\xff" * 100_000)],
    "twice": [("Authorization", f"Bearer {KEY}"), ("Authorization", f"Bearer {KEY}")],
    "two": [("Authorization", f"Bearer {KEY}"), ("x-api-key", "root")],
    "two_lines": [("x-api-key", KEY), ("X-Api-Key", "root")],
    "underscores": [("x_api_key", KEY), ("api_key", KEY)],
    "other": [("X-Goog-Api-Key", KEY), ("Cookie", f"api-key={KEY}")],
    "proxy": [("Proxy-Authorization", f"Bearer {KEY}")],
    "nearly": [("Authorization", f"Bearer {KEY[:-1]}")],
    "hash": [("Authorization", f"Bearer {hash_of(KEY)}")],
}
PATHS = [(CHAT, HELLO), ("/v1/messages", {**HELLO, "max_tokens": 5}), ("/api/chat", HELLO),
         ("/completion", HELLO), ("/upstream/m/v1/chat/completions", HELLO)]


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
def test_a_wrong_key_is_a_401(guarded: GatewayProcess, engine: RawEngine, headers: Headers) -> None:
    """In the API's own shape, on a connection that goes on; no engine is asked."""
    with RawClient(guarded.url) as client:
        for path, body in PATHS:
            answer = client.request("POST", path, [*JSON, *headers], to_bytes(body)).whole()
            assert answer.status == 401
            assert answer.header("WWW-Authenticate") == "Bearer"
            if path.startswith("/api"):
                assert ollama_error(answer)
            elif path == "/v1/messages":
                assert answer.json()["error"]["type"] == "authentication_error"
            else:
                assert openai_error(answer)["code"] == "invalid_api_key"
    assert engine.connections == []


RIGHT: dict[str, Headers] = {
    "bearer": [("Authorization", f"Bearer {KEY}")], "lower": [("authorization", f"bearer {KEY}")],
    "anthropic": [("x-api-key", KEY)], "azure": [("api-key", KEY)], "caps": [("API-KEY", KEY)],
    "spaces": [("Authorization", f"  Bearer   {KEY}\t ")],
    "both": [("Authorization", f"Bearer {KEY}"), ("x-api-key", KEY)],
    "unicode": [("Authorization", utf8(f"Bearer {UNICODE}"))],
    "unicode_api": [("x-api-key", utf8(UNICODE))],
    "nginx_login": [("Authorization", "Basic dTpw"), ("api-key", KEY)],
}


@pytest.mark.parametrize("headers", RIGHT.values(), ids=RIGHT)
def test_a_right_key_is_let_in(guarded: GatewayProcess, engine: RawEngine,
                               headers: Headers) -> None:
    """The bytes count, so that a key need be no ASCII; the engine gets nothing of it."""
    for path, body in PATHS[:4]:
        assert post(guarded.url, path, body, [*JSON, *headers]).status == 200
    sent = str([(request.line, request.headers) for request in engine.requests])
    assert KEY not in sent and utf8(UNICODE) not in sent and "uthorization" not in sent


@pytest.mark.parametrize("size", [1000, 300_000, 5_000_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_with_a_wrong_key_is_a_401(
        guarded: GatewayProcess, engine: RawEngine, size: int, chunked: bool) -> None:
    """The client gets the answer, also while it still sends; the rest is no next request."""
    body = to_bytes({**HELLO, "x": "a" * size})
    framing = ("Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}").encode()
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n" % (CHAT.encode(), framing)
    with RawClient(guarded.url) as client:
        try:
            client.send(head + (b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body))
        except ConnectionError:
            assert size > 300_000
        assert client.answer("POST").whole().status == 401
    assert engine.connections == []


def test_probes_need_no_key(guarded: GatewayProcess) -> None:
    """Whoever looks whether a server is there sees one."""
    for path in ("/", "/health", "/api/version"):
        assert get(guarded.url, path).status == 200
    assert get(guarded.url, "/api/tags").status == 401


def test_a_head_without_end_is_refused(guarded: GatewayProcess) -> None:
    """Long keys are judged, but a head has a limit as a whole."""
    lines = "".join(f"X-{number}: {'a' * 100_000}\r\n" for number in range(4))
    with RawClient(guarded.url) as client:
        client.send(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + lines.encode())
        answer = client.answer().whole()
    assert answer.status == 431 and answer.json()["error"]
    assert get(guarded.url, "/health").status == 200


HOSTS: list[tuple[str, int]] = [
    ("localhost", 200), ("127.0.0.1:1", 200), ("my.local", 200), ("[::1]", 200), ("", 200),
    ("evil.example", 403), ("localhost.evil.example:80", 403), ("a b:x/", 403), ("\xe9", 403),
]


@pytest.mark.parametrize(("host", "status"), HOSTS)
def test_on_loopback_only_local_names_are_answered(
        gateway: GatewayProcess, host: str, status: int) -> None:
    """A page that lets its own name lead here learns nothing."""
    for path in ("/v1/models", "/api/tags", "/health"):
        with RawClient(gateway.url) as client:
            client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
            answer = client.answer().whole()
        assert answer.status == status
        assert answer.header("Content-Type") == "application/json"


@pytest.mark.parametrize("head", [
    b"GET http://localhost/v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: localhost, evil.example\r\n\r\n"])
def test_two_names_are_no_way_round(gateway: GatewayProcess, head: bytes) -> None:
    """What comes as Host decides, all of it."""
    with RawClient(gateway.url) as client:
        client.send(head)
        assert client.answer().whole().status in (400, 403)


@pytest.mark.parametrize(("origin", "status"), [
    ("http://localhost:3000", 200), ("app://obsidian.md", 200), ("https://evil.example", 403),
    ("http://localhost.evil.example", 403), ("null", 403), ("\xe9", 403)])
def test_a_page_from_elsewhere_starts_no_call(
        gateway: GatewayProcess, shared_engine: RawEngine, origin: str, status: int) -> None:
    """Browsers send such a POST without asking first; it is refused before its body is read."""
    shared_engine.answer_with(reply())
    simple: Headers = [("Content-Type", "text/plain"), ("Origin", origin)]
    for path in (CHAT, "/api/generate"):
        answer = post(gateway.url, path, {**HELLO, "prompt": "x", "stream": False}, simple)
        assert answer.status == status
        allowed: Any = answer.header("Access-Control-Allow-Origin")
        assert allowed == (origin if status == 200 else None)
    assert len(shared_engine.requests) == (2 if status == 200 else 0)
