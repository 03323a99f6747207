"""POST /api/pull: a model comes from the Hugging Face hub into the registry."""

from contextlib import closing

from flask import Response

from app.api.http import services
from app.api.ollama.reading import read_fields
from app.api.ollama.refusal import Refusal, invalid
from app.api.ollama.registry import names
from app.api.ollama.registry.told import told
from app.api.ollama.request.fields import flag
from app.api.place import take_aside
from app.api.security import permit
from app.catalog.hub.client import Hub
from app.catalog.hub.patience import Patience
from app.catalog.hub.pull import Wanted, pull as pull_events
from app.catalog.hub.reference import parse
from app.catalog.manifest import Entry
from app.catalog.problems import BadName, CatalogError, HubUnavailable, NotFound
from app.catalog.progress import Events, Progress

_INVALID = "invalid model name"
_MANIFEST = Progress("pulling manifest")


class _Missing(NotFound):
    """There is no such model to pull, in the words by which clients know that."""

    def __init__(self, error: CatalogError) -> None:
        super().__init__(f"pull model manifest: file does not exist: {error}")


def pull() -> Response:
    """Bring a model, and tell how far that is; one that is there is there at once.

    It ends with its client, and what has come stays for the next one.
    """
    fields = read_fields()
    name = names.asked(fields, empty=invalid(_INVALID))
    stream = flag(fields.get("stream"), "stream", True)
    patience = Patience()
    return told(events_of(name, patience), stream, patience.cancel)


def events_of(name: str, patience: Patience) -> Events:
    """The events of a pull of what a client calls ``name``; closing them ends it.

    Takes a place. Raises Refusal and GatewayError, and while it goes on CatalogError.
    """
    gateway = services().gateway
    said = name.rpartition("://")[2]  # Ollama takes no notice of it either
    permit(said, gateway)
    name = gateway.unaliased(said)
    if is_whole(services().registry.find(name)):
        return _at_once()
    called = names.for_new(name, _INVALID)
    try:
        reference = parse(name)
    except BadName as error:
        return _failing(_Missing(error))
    take_aside()
    return _brought(Wanted(reference, called), _hub(), patience)


def _brought(wanted: Wanted, hub: Hub, patience: Patience) -> Events:
    with closing(pull_events(services().registry.home, wanted, hub, patience)) as events:
        try:
            yield from events
        except NotFound as error:
            raise _Missing(error) from error


def _at_once() -> Events:
    yield _MANIFEST
    yield Progress("success")


def _failing(error: CatalogError) -> Events:
    """By the time that Ollama knows it, its answer has begun."""
    yield _MANIFEST
    raise error


def _hub() -> Hub:
    try:
        return Hub()
    except HubUnavailable as error:
        raise Refusal(501, str(error)) from error


def is_whole(entry: Entry | None) -> bool:
    """Whether there is such a model, and all its files."""
    return entry is not None and all(
        (entry.directory / file.path).is_file() for file in entry.files)
