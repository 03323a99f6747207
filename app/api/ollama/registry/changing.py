"""DELETE /api/delete, POST /api/copy, and /api/push, which is none of the gateway's business."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flask import Response, request

from app.api.http import services
from app.api.ollama.reading import read_fields
from app.api.ollama.refusal import Refusal, invalid, of_catalog, quoted
from app.api.ollama.registry import names
from app.api.ollama.request.fields import text
from app.api.place import take_aside
from app.api.security import permit
from app.api.services import Services
from app.catalog.manifest import Entry, FileEntry
from app.catalog.problems import CatalogError
from app.catalog.store import entries
from app.errors import GatewayError, Kind

_PUSH = "models are not pushed from here: upload their files to the hub with its own tools"


def delete() -> Response:
    """Remove a model: it takes no more calls, and goes once those that run have ended.

    Blocks until it is gone; where the client leaves before, it stays.
    """
    fields = read_fields()
    entry = _entry(names.asked(fields, empty=invalid("model is required")))
    with _changing(), services().gateway.retired(entry.name, client()):
        entries.remove(services().registry.home, entry.name)
    return _done()


def copy() -> Response:
    """Give a model a second name."""
    fields = read_fields()
    source, called = (text(fields.get(key), key) for key in ("source", "destination"))
    for key, name in (("source", source), ("destination", called)):
        if not name.strip():
            raise invalid(f"{key} {quoted(name)} is invalid")
    try:
        entry = _entry(source)
    except GatewayError as error:
        if error.kind is not Kind.UNKNOWN_MODEL:
            raise
        raise Refusal(404, f"model {quoted(source)} not found") from error
    name = names.for_new(called, f"destination {quoted(called)} is invalid")
    found = services()
    with _changing(), replacing(found, name, entry.files, client()):
        entries.copy(found.registry.home, entry.name, name)
    return _done()


def push() -> Response:
    """What Ollama does for the authors of models is not offered."""
    raise Refusal(501, _PUSH)


def client() -> Any:
    """The socket of the current request's client, None where it has none of its own."""
    return request.environ.get("gunicorn.socket")


@contextmanager
def replacing(found: Services, name: str, files: Sequence[FileEntry], client: Any
              ) -> Iterator[None]:
    """Within it a model of these files may take the place of the one called ``name``.

    Blocks and raises as ``Gateway.retired`` where there is one of others, which its engine has.
    """
    before = found.registry.find(name)
    if before is None or list(before.files) == list(files):
        yield
    else:
        with found.gateway.retired(before.name, client):
            yield


def _entry(name: str) -> Entry:
    """The model that a client means; one that is not the caller's is refused as it is for calls."""
    permit(name, services().gateway)
    return services().entry(name)


@contextmanager
def _changing() -> Iterator[None]:
    take_aside()
    try:
        yield
    except CatalogError as error:
        raise of_catalog(error) from error


def _done() -> Response:
    return Response(status=200, content_type="text/plain")
