"""Keys and passwords appear nowhere: not in the log, an answer, a process's title or a check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.keys import hash_of
from tests.fakes.engine_steps import JSON_TYPE, close, reply, reset, send
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.wire import Cut
from tests.server.calls import CHAT, HELLO, JSON, post, to_bytes
from tests.server.conftest import StartGateway
from tests.server.gateway_process import ROOT, GatewayProcess
from tests.server.running.changing import REFUSED, hang_up, write

CLIENT, ENGINE, REDIS = "sk-client-7f3a9b", "sk-engine-c51d20", "redis-pa55-44e1"
UNKNOWN, ENDED, LATIN = "sk-unknown-88aa21", "sk-ended-11d4c7", "sk-caf\xe9-90b2"
SECRETS = [CLIENT, ENGINE, REDIS, UNKNOWN, ENDED, LATIN, hash_of(CLIENT), hash_of(ENDED)]
Told = list[str]


def settings(url: str, directory: Path) -> dict[str, Any]:
    """A configuration with secrets wherever there can be some."""
    file = directory / "keys.yml"
    file.write_text(json.dumps([{"name": "ended", "sha256": hash_of(ENDED),
                                 "expires": "2020-01-01"}]), encoding="utf-8")
    file.chmod(0o600)
    return {
        "server": {"rate-storage": f"redis://:{REDIS}@127.0.0.1:1/0", "body-timeout": "300ms"},
        "keys-file": str(file),
        "keys": [{"name": "alice", "sha256": hash_of(CLIENT), "models": ["m", "gone"],
                  "rate": "50/minute", "concurrency": 1}],
        "loop": {"home": str(directory / "home"), "read-timeout": "300ms", "engines": [
            {"url": url, "models": ["m", "other"], "api-key": ENGINE},
            {"url": "http://127.0.0.1:1", "models": ["gone"], "api-key": ENGINE}]}}


@pytest.fixture(scope="module")
def engine() -> Iterator[RawEngine]:
    """An engine that fails in every way in turn."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture(scope="module")
def gateway(engine: RawEngine, start_gateway: StartGateway,
            tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway full of secrets."""
    return start_gateway(settings(engine.url, tmp_path_factory.mktemp("secrets")))


HEADERS = [
    [("Authorization", f"Bearer {key}")] for key in (CLIENT, UNKNOWN, ENDED, LATIN, ENGINE)
] + [[("x-api-key", CLIENT), ("api-key", UNKNOWN)], [("Authorization", f"Basic {CLIENT}")],
     [("Authorization", f"Bearer {CLIENT}"), ("Content-Encoding", "br")],
     [("Authorization", f"Bearer {CLIENT}"), ("Content-Encoding", "gzip")],
     [("Authorization", f"Bearer {CLIENT}"), ("Origin", "https://evil.example")],
     [("Authorization", f"Bearer {CLIENT}"), ("X-Request-Id", "a b")]]
BODIES: list[Any] = [HELLO, *({**HELLO, "model": each} for each in ("gone", "other", "nope")), b"{"]
CALLS = [("POST", path, body) for path in (CHAT, "/v1/messages", "/api/chat", "/completion")
         for body in BODIES]
CALLS += [("GET", f"/v1/models?api_key={CLIENT}", None), ("GET", "/nope", None),
          ("POST", "/upstream/m/x", HELLO), ("PUT", CHAT, None)]
FAULTS = [reply(500, b'{"error":{"message":"sad"}}'), reply(401, b'{"error":"key"}'), close, reset,
          reply(302, b"", [("Location", "/")]), send(b"garbage\r\n\r\n"),
          reply(200, b"{", JSON_TYPE)]
# What is no HTTP, with a key in the very line that is wrong.
BROKEN = [
    f"POST {CHAT} HTTP/1.1\r\nAuthorization Bearer {CLIENT}\r\n\r\n",
    f"POST {CHAT} HTTP/1.1\r\nAuthorization : Bearer {CLIENT}\r\n\r\n",
    f"POST {CHAT} HTTP/1.1\r\nAuthorization: Bearer\r\n {CLIENT}\r\n\r\n",
    f"POST {CHAT} HTTP/1.1\r\nAuthorization: Bearer \0{CLIENT}\r\n\r\n",
    f"POST {CHAT}?key={CLIENT} HTTP/9.9\r\n\r\n", f"POST {CHAT}?key={CLIENT}\r\n\r\n",
    f"G@T {CHAT}?key={CLIENT} HTTP/1.1\r\n\r\n", f"{CLIENT}\r\n\r\n",
    f"POST {CHAT} HTTP/1.1\r\nHost: {CLIENT} x\r\nx-api-key: {CLIENT}\r\n\r\n",
    f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nx-api-key: {CLIENT}\r\nContent-Length: x\r\n\r\n",
    f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nx-api-key: {CLIENT}\r\nContent-Length: 9\r\n\r\n{{",
    f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nx-api-key: {CLIENT}\r\nExpect: {CLIENT}\r\n\r\n",
    f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {CLIENT}\r\n\r\n",
]


def answers(gateway: GatewayProcess, engine: RawEngine) -> Told:
    """What all these requests are told, however they end."""
    told = []
    for number, headers in enumerate(HEADERS):
        engine.answer_with(*FAULTS[number % len(FAULTS):], *FAULTS)
        for method, path, body in CALLS:
            with RawClient(gateway.url) as client:
                sent = None if body is None else to_bytes(body)
                answer = client.request(method, path, [*JSON, *headers], sent).whole()
            told.append(f"{answer.status} {answer.headers} {answer.body!r}")
    for text in BROKEN:
        with RawClient(gateway.url) as client, suppress(Cut):
            client.send(text.encode("latin-1"))
            answer = client.answer().whole()
            told.append(f"{answer.status} {answer.headers} {answer.body!r}")
    return told


def titles(gateway: GatewayProcess) -> Told:
    """What other users of the machine see of the gateway's processes and threads."""
    found = []
    for pid in gateway.workers():
        parent = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[1]
        for process in (str(pid), parent):
            paths = [Path(f"/proc/{process}/cmdline"),
                     *Path(f"/proc/{process}/task").glob("*/comm")]
            found += [path.read_text("utf-8") for path in paths]
    return found


def test_a_run_with_many_faults_tells_no_secret(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Neither who calls nor who reads the log or the list of processes learns one."""
    told = [*answers(gateway, engine), *titles(gateway), gateway.log(), gateway.access_log()]
    statuses = {text[:3] for text in told}
    assert {"200", "400", "401", "403", "404", "405", "415", "429", "502"} <= statuses, statuses
    assert "rate-storage fails" in gateway.log() and "refused a request" in gateway.log()
    for secret in SECRETS:
        assert not [text for text in told if secret in text]
    # The client's keys are no secret to the engine alone by luck: it never had one of them.
    sent = str([(request.line, request.headers) for request in engine.requests])
    assert CLIENT not in sent.replace(f"?api_key={CLIENT}", "")


WRONG: list[dict[str, Any]] = [
    {}, {"server": {"rate-storage": f"redis://:{REDIS}@host:x"}}, {"keys": [CLIENT]},
    {"keys": [{"name": "a", "sha256": CLIENT}]}, {"keys": {"alice": CLIENT}}, {"keys": CLIENT},
    {"keys": [{"name": "a", CLIENT: 1}]}, {"keys-file": "/no/such/file"},
    {"loop": {"engines": [{"url": "http://e", "models": ["m"], "api-key": f"{ENGINE} x"}]}},
    {"loop": {"engines": [ENGINE]}}, {"loop": {"engines": {"api-key": ENGINE}}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_check_tells_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str], wrong: dict[str, Any]) -> None:
    """Whether the configuration is good or not, and wherever the secrets come from."""
    path = tmp_path / "gateway.json"
    path.write_text(json.dumps({**settings("http://127.0.0.1:2", tmp_path), **wrong}))
    monkeypatch.setenv("LOOP_CONFIG", str(path))
    assert main(["check-config"]) == (1 if wrong else 0)
    for name, value in (("LOOP_UNKNOWN", CLIENT), ("LOOP_KEYS", CLIENT),
                        ("LOOP_SERVER_RATE_STORAGE", REDIS)):
        monkeypatch.setenv(name, value)
        assert main(["check-config"]) == 1
    told = capsys.readouterr()
    assert "the configuration has" in told.err
    assert not [secret for secret in SECRETS if secret in told.out + told.err]


LINES = [f"command: llama-server --api-key {ENGINE} --port {{port}}", f"api-key: *{ENGINE}",
         f"api-key: !{ENGINE}", f"url: http://127.0.0.1:1/v1?key={ENGINE}", f"api-key:{ENGINE}"]
REFUSING = "loop:\n  engines:\n  - models: [m]\n    "


@pytest.mark.parametrize("line", LINES)
def test_a_new_configuration_tells_no_secret(gateway: GatewayProcess, line: str) -> None:
    """When it is refused, in the log of the gateway that goes on."""
    write(gateway, f"{REFUSING}{line}\n")
    assert REFUSED in hang_up(gateway)
    assert ENGINE not in gateway.log()


@pytest.mark.parametrize("program", [
    ("gunicorn", "-c", "etc/gunicorn.conf.py"), ("app.launcher.serve",)])
def test_a_start_tells_no_secret(tmp_path: Path, program: tuple[str, ...]) -> None:
    """When it comes to nothing because of the configuration."""
    file = tmp_path / "gateway.yml"
    file.write_text(f"{REFUSING}{LINES[0]}\n", encoding="utf-8")
    ended = subprocess.run([sys.executable, "-m", *program], cwd=ROOT, capture_output=True,
                           env={**os.environ, "LOOP_CONFIG": str(file)}, timeout=30, check=False)
    told = (ended.stdout + ended.stderr).decode()
    assert ended.returncode == 1 and "the configuration has" in told and ENGINE not in told


def test_a_call_that_is_cut_off_tells_no_secret(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The client leaves in the midst of it."""
    for ending in ("reset", "close"):
        with RawClient(gateway.url) as client:
            body = to_bytes(HELLO)
            head = (f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nx-api-key: {CLIENT}\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n")
            client.send(head.encode() + body[:9])
            getattr(client, ending)()
    post(gateway.url, CHAT, HELLO)
    logs = gateway.log() + gateway.access_log()
    assert not [secret for secret in SECRETS if secret in logs]
