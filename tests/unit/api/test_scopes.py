"""Which scope each address needs, whether or not there is a route for it yet."""

from __future__ import annotations

import pytest

from app.api.security.scopes import needed
from app.factory import create_app
from app.keys import Scope
from app.settings import Settings

OPEN = ["/", "/health", "/api/version"]
INFER = [
    "/v1/models", "/v1/models/m", "/models", "/v1/chat/completions", "/v1/messages", "/v1/engines",
    "/api/tags", "/api/ps", "/api/show", "/api/chat", "/api/generate", "/api/embed", "/api/me",
    "/completion", "/infill", "/tokenize", "/nope", "/v1/upstream/x", "/healthz", "/health/",
    "/api", "/api/version/", "/metricsx", "/v1/metrics", "/enginesx", "//", "/openapi.json",
]
ADMIN = [
    "/upstream", "/upstream/", "/upstream/m/metrics", "/upstream/m/v1/chat/completions", "/engines",
    "/engines/", "/engines/1/stop", "/api/pull", "/api/create", "/api/copy", "/api/delete",
    "/api/push", "/api/blobs/sha256:1", "/api/pull/", "/api/create/", "/api/copy/", "/api/push/",
    "/v1/load_lora_adapter/", "/v1/load_lora_adapter", "/v1/unload_lora_adapter",
]
STATE = ["/props", "/slots", "/slots/0", "/lora-adapters"]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "BREW"]


@pytest.mark.parametrize("path", OPEN)
def test_probes_need_no_key(path: str) -> None:
    """Reading what tells nothing."""
    assert needed("GET", path) is needed("HEAD", path) is None
    assert needed("POST", path) is Scope.INFER


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("path", "scope"), [
    *[(path, Scope.INFER) for path in INFER], *[(path, Scope.ADMIN) for path in ADMIN],
    ("/metrics", Scope.METRICS)])
def test_every_other_address_needs_one(path: str, scope: Scope, method: str) -> None:
    """The same for every method."""
    assert needed(method, path) is scope


LORA = "/v1/load_lora_adapter"
SPELLINGS = {
    LORA: ["/v1//load_lora_adapter", "/v1/load_lora_adapter//", "/V1/Load_LoRA_Adapter",
           "/v1/load%5Flora_adapter", "/v1/load%255flora_adapter", "/v1/%6Coad_lora_adapter",
           "/v1%2fload_lora_adapter", "/v1\\load_lora_adapter", "/v1/load_lora_adapter;a=b",
           "/v1;x/load_lora_adapter", "/v1/load_lora_adapter%00", "/v1/load_lora_adapter%00.txt",
           "/v1/load_lora_adapter%20", "/v1/load_lora_adapter%3Fx", "/v1/load_lora_adapter%23x",
           "/v1/load_lora_adapter%3Fx/y", "//v1/load_lora_adapter", "/v1/%2fload_lora_adapter",
           "/v1/load_lora_adapter/x", "/v1/load_lora_adapter\x00x", "/v1/%09/load_lora_adapter"],
    "/api/blobs/sha256:1": ["/api/blobs/;", "/api//blobs/x", "/api/blobs"],
    "/upstream/m/x": ["/upstream/;x", "/upstream//m/x", "/upstream/%20"],
    "/slots/0": ["/slots/;a", "/slots;a/0", "/slots//0", "/props/", "/lora-adapters/x"],
    "/metrics": ["/metrics/", "/metrics;x", "//metrics"],
}


@pytest.mark.parametrize(("path", "spelling"), [
    (path, spelling) for path, spellings in SPELLINGS.items() for spelling in spellings])
def test_another_spelling_needs_the_same(path: str, spelling: str) -> None:
    """Whatever a server in front of an engine may take for the same address."""
    assert needed("POST", spelling) is needed("POST", path) is not Scope.INFER


@pytest.mark.parametrize("path", STATE)
def test_the_state_of_an_engine_is_read_with_infer_and_changed_with_admin(path: str) -> None:
    """Whatever is no reading is a change."""
    for method in METHODS:
        reading = method in ("GET", "HEAD", "OPTIONS")
        assert needed(method, path) is (Scope.INFER if reading else Scope.ADMIN)


@pytest.mark.parametrize("path", [*INFER, *ADMIN, *STATE, "/api/user/keys/1"])
def test_to_delete_needs_admin(path: str) -> None:
    """Whatever it is."""
    assert needed("DELETE", path) is Scope.ADMIN


def test_every_route_but_the_probes_needs_a_key() -> None:
    """A new route is closed until someone opens it."""
    rules = {rule.rule for rule in create_app(Settings()).url_map.iter_rules()}
    assert {rule for rule in rules if needed("GET", rule) is None} == set(OPEN)
