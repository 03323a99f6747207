"""How the tests change the registry through the gateway, and look at what has become of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from app.catalog.manifest import Entry, FileEntry
from app.catalog.registry import Registry
from app.catalog.store import entries
from app.catalog.store.blobs import Blobs
from app.catalog.store.manifests import Origin, manifest
from app.catalog.store.sweep import sweep
from app.catalog.store.verify import Checked, verify
from tests.fakes.raw_client import RawAnswer, RawClient, fetch, request_bytes
from tests.server.calls import JSON, get, post, to_bytes

PULL, COPY, CREATE, DELETE = "/api/pull", "/api/copy", "/api/create", "/api/delete"
Event = dict[str, Any]


def digest_of(data: bytes) -> str:
    """As Ollama's clients write it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def events_of(body: bytes) -> list[Event]:
    """The lines of a stream, the last of which is ended too."""
    assert body.endswith(b"\n")
    return [json.loads(line) for line in body.splitlines()]


class Registered:
    """A gateway's registry, seen from outside and from inside."""

    def __init__(self, url: str, home: Path) -> None:
        self.url = url
        self.home = home

    def clear(self) -> None:
        """Have no model, no blob and no rest of one."""
        for entry in Registry(self.home).entries():
            entries.remove(self.home, entry.name)
        sweep(self.home)

    def put(self, name: str, data: bytes, file: str = "m.gguf") -> str:
        """Have a model of one file; its digest."""
        digest = digest_of(data)
        with Blobs(self.home) as blobs:
            blobs.put(BytesIO(data), digest)
            sha256 = digest.removeprefix("sha256:")
            made = manifest(name, Origin("org/m"), "Q8_0", [FileEntry(file, len(data), sha256)])
            entries.put(self.home, made)
        return digest

    def names(self) -> list[str]:
        """What clients are told that there is."""
        return [model["name"] for model in get(self.url, "/api/tags").json()["models"]]

    def entry(self, name: str) -> Entry:
        """The model of that name."""
        found = Registry(self.home).find(name)
        assert found, name
        return found

    def blobs(self) -> set[str]:
        """The names of all files among the blobs, unfinished ones too."""
        folder = self.home / "blobs"
        return {path.name for path in folder.iterdir()} if folder.exists() else set()

    def is_sound(self) -> bool:
        """Whether all models have the bytes that they should."""
        found = verify(Registry(self.home).entries())
        return not [check for check in found if isinstance(check, Checked) and check.problem]

    def pull(self, name: str, **fields: Any) -> RawAnswer:
        """Ask for a model; the answer is whole."""
        return post(self.url, PULL, {"model": name, **fields})

    def delete(self, name: str) -> RawAnswer:
        """Ask for the end of a model."""
        return fetch(self.url, "DELETE", DELETE, to_bytes({"model": name}), JSON)

    def copy(self, source: str, destination: str) -> RawAnswer:
        """Ask for a second name."""
        return post(self.url, COPY, {"source": source, "destination": destination})

    def create(self, name: str, **fields: Any) -> RawAnswer:
        """Ask for a model to be made."""
        return post(self.url, CREATE, {"model": name, **fields})

    def upload(self, data: bytes, digest: str = "") -> RawAnswer:
        """Send a blob."""
        return fetch(self.url, "POST", f"/api/blobs/{digest or digest_of(data)}", data)

    def has_blob(self, data: bytes) -> bool:
        """Whether the gateway says so."""
        return fetch(self.url, "HEAD", f"/api/blobs/{digest_of(data)}").status == 200

    @contextmanager
    def pulling(self, name: str) -> Iterator[tuple[RawClient, Iterator[Event]]]:
        """A pull under way: its client, and its events as they come."""
        with RawClient(self.url) as client:
            body = to_bytes({"model": name})
            client.send(request_bytes("POST", PULL, [("Host", client.host), *JSON], body))
            answer = client.answer("POST")
            assert answer.status == 200, answer.body
            yield client, _arriving(answer.pieces())


def _arriving(pieces: Iterable[bytes]) -> Iterator[Event]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(json.loads, lines)
    assert rest == b""
