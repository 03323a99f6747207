"""Who may change the registry, where there are keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.keys import hash_of
from tests.fakes.raw_client import RawAnswer, fetch
from tests.fakes.whole_gguf import SMALL
from tests.server.calls import ollama_error, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.registry.asking import Registered, digest_of

SCOPES = ["infer", "admin"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registered]:
    """A gateway with a key for everything, one that only calls, and one for some models."""
    home = tmp_path_factory.mktemp("guarded") / "home"
    keys = [{"name": "root", "sha256": hash_of("root"), "scopes": SCOPES},
            {"name": "user", "sha256": hash_of("user")},
            {"name": "team", "sha256": hash_of("team"), "scopes": SCOPES, "models": ["team/*"]}]
    settings = {"keys": keys, "loop": {"home": str(home), "engines": [
        {"url": "http://127.0.0.1:1", "models": ["*"]}]}}
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as gateway:
        yield Registered(gateway.url, Path(home))


@pytest.fixture
def served(guarded: Registered) -> Registered:
    """It, with one model of the team's and one of others."""
    guarded.clear()
    guarded.put("team/m:1", SMALL)
    guarded.put("other", SMALL)
    return guarded


def ask(served: Registered, key: str, method: str, path: str, body: Any) -> RawAnswer:
    """One request with this key."""
    headers = [("Authorization", f"Bearer {key}")]
    return fetch(served.url, method, path, to_bytes(body), headers)


CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/api/pull", {"model": "other"}), ("DELETE", "/api/delete", {"model": "other"}),
    ("POST", "/api/copy", {"source": "other", "destination": "x"}),
    ("POST", "/api/create", {"model": "x", "from": "other"}),
    ("POST", f"/api/blobs/{digest_of(b'x')}", b"x"), ("HEAD", f"/api/blobs/{digest_of(b'x')}", b""),
    ("POST", "/api/push", {"model": "other"}),
]
SLASHED = [(method, f"{path}/", body) for method, path, body in CHANGES]


@pytest.mark.parametrize(("method", "path", "body"), [*CHANGES, *SLASHED])
def test_it_takes_the_scope_admin(served: Registered, method: str, path: str, body: Any) -> None:
    """Whatever a key may call; without a key it is a 401."""
    refused = ask(served, "user", method, path, body)
    assert refused.status == 403
    assert method == "HEAD" or "lacks the scope 'admin'" in ollama_error(refused)
    assert ask(served, "", method, path, body).status == 401
    assert served.entry("other") and len(served.blobs()) == 1


OTHERS = [*CHANGES[:4],
          ("POST", "/api/copy", {"source": "team/m:1", "destination": "other"}),
          ("POST", "/api/create", {"model": "other", "from": "team/m:1"}),
          ("POST", "/api/create", {"model": "team/x", "from": "other"}),
          ("POST", "/api/pull", {"model": "hf.co/org/m"})]


@pytest.mark.parametrize(("method", "path", "body"), OTHERS)
def test_models_of_others_are_not_touched(
        served: Registered, method: str, path: str, body: Any) -> None:
    """By a key that is for some models: neither read nor written."""
    refused = ask(served, "team", method, path, body)
    assert refused.status == 403 and "may not use the model" in ollama_error(refused)
    assert served.entry("other") and served.entry("team/m:1")


@pytest.mark.parametrize("key", ["root", "team"])
def test_a_key_with_the_scope_changes_its_models(served: Registered, key: str) -> None:
    """All of them, or those that it is for."""
    body = {"source": "team/m:1", "destination": "team/n"}
    assert ask(served, key, "POST", "/api/copy", body).status == 200
    made = {"model": "team/o", "from": "team/n", "stream": False}
    assert ask(served, key, "POST", "/api/create", made).status == 200
    assert ask(served, key, "DELETE", "/api/delete", {"model": "team/m:1"}).status == 200
