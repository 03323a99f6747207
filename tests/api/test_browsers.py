"""What web pages may do: preflights without a key, answers that they may read, names they use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.settings import EngineSettings
from tests.api.conftest import Build
from tests.api.holders import bearer, holder
from tests.fakes.engine_steps import JSON_TYPE, reply
from tests.fakes.raw_engine import RawEngine
from tests.fakes.strict_json import strict_json

CHAT = "/v1/chat/completions"
PAGE, LOCAL, EVIL = "https://chat.example.org", "http://localhost:3000", "https://evil.example"
ALLOWED = [LOCAL, "http://127.0.0.1:8080", "https://localhost", "app://obsidian.md", "file://",
           "tauri://localhost", "vscode-webview://1a2b", PAGE]
REFUSED = [EVIL, "http://localhost.evil.example", "null", "chrome-extension://abc",
           "https://chat.example.org.evil.example", "http://chat.example.org"]
ASKED = "authorization,content-type,x-stainless-os"
PATHS = [CHAT, "/v1/models", "/v1/nope", "/v1/messages", "/api/chat", "/api/tags", "/completion",
         "/upstream/m/x", "/metrics", "/engines", "/health", "/", "/nope"]
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """An engine that answers with CORS headers of its own, as llama-server does."""
    theirs = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Credentials", "true"),
              ("access-control-expose-headers", "X-Secret"), ("Access-Control-Max-Age", "1")]
    with RawEngine(reply(headers=[*JSON_TYPE, *theirs])) as engine:
        yield engine


@pytest.fixture
def client(build: Build, engine: RawEngine) -> FlaskClient:
    """A gateway with a key and one allowed page."""
    return build(engines=(EngineSettings(engine.url, ("m",)),), keys=(holder("alice"),),
                 server={"cors_origins": (PAGE,)})


def preflight(origin: str, method: str = "POST", headers: str = ASKED) -> dict[str, str]:
    """The headers of a browser's question whether it may send a request."""
    return {"Origin": origin, "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": headers}


def cors(answer: Any) -> dict[str, str]:
    """The CORS headers of an answer, none of which is there twice."""
    found = [(name.lower(), value) for name, value in answer.headers
             if name.lower().startswith("access-control-")]
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.mark.parametrize("path", PATHS)
def test_a_preflight_of_an_allowed_page_needs_no_key(
        client: FlaskClient, engine: RawEngine, path: str) -> None:
    """It allows the origin, the method and every header asked for; no engine hears of it."""
    for origin in ALLOWED:
        answer = client.options(path, headers=preflight(origin))
        assert (answer.status_code, answer.data) == (204, b"")
        found = cors(answer)
        assert found["access-control-allow-origin"] == origin
        assert found["access-control-allow-headers"].split(", ") == ASKED.split(",")
        assert {"POST", "GET", "DELETE", "PUT", "PATCH", "HEAD"} == set(
            found["access-control-allow-methods"].split(", "))
        assert found["access-control-max-age"] == "43200"
        assert "access-control-allow-credentials" not in found
        assert "Origin" in answer.headers["Vary"]
        assert "Content-Type" not in answer.headers
    assert engine.connections == []


SDK = ["authorization", "x-api-key", "api-key", "content-type", "anthropic-version",
       "anthropic-beta", "anthropic-dangerous-direct-browser-access", "openai-beta",
       "openai-organization", "user-agent", "x-requested-with", "x-request-id",
       "x-stainless-retry-count", "x-stainless-timeout", "x-stainless-helper-method"]


def test_every_header_of_a_client_library_is_allowed(client: FlaskClient) -> None:
    """Libraries add their own; what a page may send is no danger, where it comes from is."""
    answer = client.options(CHAT, headers=preflight(LOCAL, headers=",".join(SDK)))
    assert set(cors(answer)["access-control-allow-headers"].split(", ")) == set(SDK)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", PATHS)
def test_any_other_page_is_refused(
        client: FlaskClient, engine: RawEngine, path: str, method: str) -> None:
    """With a key too, whatever the method, and without a header that lets it read the answer."""
    for origin in REFUSED:
        more = preflight(origin) if method == "OPTIONS" else {"Origin": origin}
        answer = client.open(path, method=method, data=BODY, headers={**bearer("alice"), **more})
        assert answer.status_code == 403 and cors(answer) == {}
        problem = path in ("/metrics", "/engines")
        assert answer.content_type == f"application/{'problem+' if problem else ''}json"
    assert engine.connections == []


@pytest.mark.parametrize(("path", "status", "headers"), [
    (CHAT, 200, bearer("alice")), ("/api/chat", 200, bearer("alice")), (CHAT, 401, {}),
    (CHAT, 401, bearer("nobody")), ("/upstream/m/x", 403, bearer("alice")), ("/api/chat", 401, {}),
    ("/api/nope", 404, bearer("alice")), ("/v1/models", 405, bearer("alice"))])
def test_an_allowed_page_may_read_every_answer(
        client: FlaskClient, path: str, status: int, headers: dict[str, str]) -> None:
    """Errors too, a 401 above all; the engine's own CORS headers are not passed on."""
    answer = client.post(path, data=BODY, headers={**headers, "Origin": PAGE}, buffered=True)
    assert answer.status_code == status
    found = cors(answer)
    assert found.pop("access-control-allow-origin") == PAGE
    assert list(found) == ["access-control-expose-headers"]
    assert {"X-Request-Id", "Retry-After", "x-ratelimit-remaining-requests"} <= set(
        found["access-control-expose-headers"].split(", "))


@pytest.mark.parametrize("path", [CHAT, "/api/chat", "/upstream/m/x"])
def test_who_is_no_browser_hears_nothing_of_it(build: Build, engine: RawEngine, path: str) -> None:
    """Without an origin there are no CORS headers, of the engine's neither."""
    client = build(engines=(EngineSettings(engine.url, ("m",)),))
    answer = client.post(path, data=BODY, buffered=True)
    assert answer.status_code == 200 and cors(answer) == {}


def test_a_page_of_the_gateways_own_address_is_let_in(client: FlaskClient) -> None:
    """Whatever that is called by whoever stands in front."""
    for origin in ("http://gw.local:11434", "https://gw.local:11434"):
        headers = {**bearer("alice"), "Host": "gw.local:11434", "Origin": origin}
        assert client.get("/v1/models", headers=headers).status_code == 200


def test_every_page_can_be_allowed(build: Build) -> None:
    """With a star, which is then what the answer says."""
    client = build(server={"cors_origins": ("*",)})
    for origin in (EVIL, "null", LOCAL):
        answer = client.get("/v1/models", headers={"Origin": origin})
        assert cors(answer)["access-control-allow-origin"] == "*"
        answer = client.options(CHAT, headers=preflight(origin))
        assert answer.status_code == 204
        assert cors(answer)["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("headers", [{}, {"Origin": LOCAL}, preflight(LOCAL)])
def test_options_that_are_no_preflight_need_a_key(client: FlaskClient,
                                                  headers: dict[str, str]) -> None:
    """They are requests like others: /upstream hands them to the engine."""
    asks = "Access-Control-Request-Method" in headers
    assert client.options(CHAT, headers=headers).status_code == (204 if asks else 401)
    answer = client.options(CHAT, headers={**headers, **bearer("alice")})
    assert answer.status_code == (204 if asks else 200)
    assert asks or set(answer.headers["Allow"].split(", ")) == {"POST", "OPTIONS"}


HOSTS = [("localhost", 200), ("127.0.0.1:11434", 200), ("[::1]:11434", 200), ("my.local", 200),
         ("192.168.1.2", 200), ("gw.example.org", 200), ("GW.example.org:443", 200),
         ("evil.example", 403), ("evil.example:11434", 403), ("localhost.evil.example", 403),
         ("8.8.8.8", 403)]


@pytest.mark.parametrize(("host", "status"), HOSTS)
@pytest.mark.parametrize("path", ["/v1/models", "/api/tags", "/health", "/", "/v1/messages"])
def test_a_name_that_is_not_the_gateways_is_refused(
        build: Build, path: str, host: str, status: int) -> None:
    """A page whose name was made to lead here is told nothing, in the API's own shape."""
    client = build(server={"allowed_hosts": ("gw.example.org",)})
    answer = client.get(path, headers={"Host": host, "Origin": f"http://{host}"})
    assert answer.status_code == (405 if path == "/v1/messages" and status == 200 else status)
    if status == 403:
        error = strict_json(answer.data)["error"]
        assert path.startswith(("/api", "/v1/messages")) or error["code"] == "host_not_allowed"
        assert "server.allowed-hosts" in answer.text


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5"])
def test_on_other_addresses_names_are_not_checked(build: Build, address: str) -> None:
    """Others call such a gateway by names that it does not know, unless it is told some."""
    evil = {"Host": "evil.example"}
    assert build(server={"address": address}).get("/health", headers=evil).status_code == 200
    told = build(server={"address": address, "allowed_hosts": ("gw.example.org",)})
    assert told.get("/health", headers=evil).status_code == 403
