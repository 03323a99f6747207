"""Which scope a request needs. Pure: method and path in, decision out."""

from app.api.paths import folded
from app.keys import Scope

_OPEN = {"/", "/health", "/api/version"}  # probed before anyone has a key; they tell nothing
_READING = {"GET", "HEAD", "OPTIONS"}
# These, and what is below them.
_ADMIN = (
    "/upstream", "/engines", "/api/blobs",
    "/api/pull", "/api/create", "/api/copy", "/api/push", "/api/delete",
    "/v1/load_lora_adapter", "/v1/unload_lora_adapter",
)
# To be asked with infer, to be told something with admin.
_STATE = ("/props", "/slots", "/lora-adapters")


def needed(method: str, path: str) -> Scope | None:
    """The scope for a request; None where none is needed, nor a key.

    Every spelling of a path that an engine may take for the same needs the same.
    """
    if path in _OPEN and method in _READING:
        return None
    plain = folded(path)
    if plain == "/metrics":
        return Scope.METRICS
    if method == "DELETE" or _within(plain, _ADMIN):
        return Scope.ADMIN
    return Scope.ADMIN if method not in _READING and _within(plain, _STATE) else Scope.INFER


def _within(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
