"""Which scope a request needs. Pure: method and path in, decision out."""

from app.keys import Scope

_OPEN = {"/", "/health", "/api/version"}  # probed before anyone has a key; they tell nothing
_READING = {"GET", "HEAD", "OPTIONS"}
_ADMIN = {
    "/api/pull", "/api/create", "/api/copy", "/api/push", "/api/delete",
    "/v1/load_lora_adapter", "/v1/unload_lora_adapter",
}
_ADMIN_BELOW = ("/upstream/", "/engines/", "/api/blobs/")
# To be asked with infer, to be told something with admin.
_STATE = {"/props", "/slots", "/lora-adapters"}


def needed(method: str, path: str) -> Scope | None:
    """The scope for a request; None where none is needed, nor a key."""
    if path in _OPEN and method in _READING:
        return None
    bare = path.rstrip("/")  # routes of Ollama's API are found with a slash behind them as well
    if bare == "/metrics":
        return Scope.METRICS
    if bare in _ADMIN or bare in ("/upstream", "/engines"):
        return Scope.ADMIN
    if path.startswith(_ADMIN_BELOW):
        return Scope.ADMIN
    if method not in _READING and (bare in _STATE or path.startswith("/slots/")):
        return Scope.ADMIN
    return Scope.ADMIN if method == "DELETE" else Scope.INFER
