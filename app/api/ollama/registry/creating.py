"""POST /api/create: a model made of another one, or of files that were uploaded."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Response

from app.api.http import services
from app.api.ollama.reading import read_fields
from app.api.ollama.refusal import invalid
from app.api.ollama.registry import additions, names, pulling
from app.api.ollama.registry.changing import client, replacing
from app.api.ollama.registry.told import told
from app.api.ollama.request.fields import flag, text
from app.api.ollama.show import template_of
from app.api.place import take_aside
from app.api.security import permit
from app.api.services import Services
from app.catalog.hub.patience import Patience
from app.catalog.manifest import Entry, FileEntry
from app.catalog.progress import Events, Progress
from app.catalog.store import create as store
from app.catalog.store import entries

_INVALID = "invalid model name"


def create() -> Response:
    """Make a model, and tell how far that is; a base that is not there is pulled first."""
    fields = read_fields()
    name = names.for_new(names.asked(fields, empty=invalid(_INVALID)), _INVALID)
    stream = flag(fields.get("stream"), "stream", True)
    additions.require_supported(fields)
    base = text(fields.get("from"), "from").strip()
    files = additions.files_of(fields.get("files"))
    making, patience = _Making(services(), name, client()), Patience()
    if base:
        events = _of_model(making, base, fields, patience)
    elif files:
        take_aside()
        events = making.of_files(files, additions.of(fields))
    else:
        raise invalid("neither 'from' or 'files' was specified")
    return told(events, stream, patience.cancel)


def _of_model(
    making: "_Making", base: str, fields: dict[str, Any], patience: Patience
) -> Events:
    gateway = services().gateway
    said = base.rpartition("://")[2]
    permit(said, gateway)
    base = gateway.unaliased(said)
    entry = services().registry.find(base)
    added = additions.of(fields, _templates(entry) if entry else ())
    if entry and pulling.is_whole(entry):
        take_aside()
        return making.of_model(entry.name, added)
    return making.of_hub(pulling.events_of(said, patience), base, added)


def _templates(entry: Entry) -> list[str]:
    """The templates that clients are shown of the model's file."""
    model = services().facts.of_model(entry)
    engine = services().gateway.engine_facts(entry.name, ask=False)
    return [template_of(model, None), template_of(model, engine)]


@dataclass(frozen=True)
class _Making:
    """A model that is being made, as events, which outlive the request they are made in."""

    found: Services
    name: str
    client: Any

    def of_model(self, base: str, added: Mapping[str, Any]) -> Events:
        """Made of a model that is there; it is before the first event."""
        entry = entries.find(self._home, base)
        with self._replacing(entry.files):
            store.from_model(self._home, self.name, entry.name, added)
        yield from _layers(entry.files)

    def of_hub(self, brought: Events, base: str, added: Mapping[str, Any]) -> Events:
        """Made of a model that comes first."""
        with closing(brought):
            for event in brought:
                if event.status != "success":
                    yield event
        yield from self.of_model(base, added)

    def of_files(self, files: Mapping[str, str], added: Mapping[str, Any]) -> Events:
        """Made of blobs; it is before the first event."""
        with self._replacing(()):
            store.from_blobs(self._home, self.name, files, added)
        yield Progress("parsing GGUF")
        yield from _layers(entries.find(self._home, self.name).files)

    @property
    def _home(self) -> Path:
        return self.found.registry.home

    def _replacing(self, files: Sequence[FileEntry]) -> AbstractContextManager[None]:
        return replacing(self.found, self.name, files, self.client)


def _layers(files: Sequence[FileEntry]) -> Iterator[Progress]:
    for file in files:
        yield Progress(f"using existing layer sha256:{file.sha256}")
    yield Progress("writing manifest")
    yield Progress("success")
