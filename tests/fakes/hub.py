"""A Hugging Face hub on loopback, with the faults that a test asks for.

It speaks what huggingface_hub and downloads by plain HTTP use: the model API with the SHA-256 of
large files, /resolve/ with the hub's headers, a redirect to storage on an address of its own, and
ranges there. Requests in absolute form are answered too, so it is a proxy to itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

SHA = "4b1c" + "0" * 36
_API = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+)(?:/revision/(?P<revision>.+))?")
_RESOLVE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
_STORED = re.compile(r"/storage/(?P<sha256>[0-9a-f]{64})")
PATIENCE = 20.0


@dataclass
class Fault:
    """What the next answer is instead. ``where``: api, resolve or storage.

    ``status`` with ``headers``: that answer. ``cut``: the connection ends after so many bytes of
    the body, or with ``hold`` goes on once this event is set; ``reached`` is set then. ``hold``
    without ``cut``: not even a head comes before. ``body``: other bytes. ``whole``: a range is
    answered with the whole file.
    """

    where: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    hold: threading.Event | None = None
    body: bytes | None = None
    whole: bool = False
    reached: threading.Event = field(default_factory=threading.Event, repr=False)


@dataclass
class Repo:
    """Files of a repository. With a ``token`` it is private, or ``gated`` for everyone else."""

    files: dict[str, bytes]
    sha: str = SHA
    token: str | None = None
    gated: bool = False
    name: str = ""
    listed: dict[str, dict[str, Any]] = field(default_factory=dict)  # instead of what is true


@dataclass(frozen=True)
class Seen:
    """One request, and which server got it."""

    method: str
    path: str
    headers: Mapping[str, str]
    where: str


class FakeHub:
    """The hub and its storage; ``requests`` is what came in, ``faults`` are used up in order."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.faults: list[Fault] = []
        self.requests: list[Seen] = []
        self._hub, self._storage = _Server(self), _Server(self)
        # By another name, because not every version of the library looks at the port.
        self.url = f"http://127.0.0.1:{self._hub.server_port}"
        self.storage_url = f"http://localhost:{self._storage.server_port}"

    def add(self, repo: str, files: Mapping[str, bytes], **options: Any) -> Repo:
        """A repository with these files."""
        self.repos[repo] = Repo(dict(files), **{"name": repo, **options})
        return self.repos[repo]

    def asked(self, where: str) -> list[Seen]:
        """The requests of one kind."""
        return [seen for seen in self.requests if seen.where == where]

    def fault(self, where: str) -> Fault | None:
        """The next fault for such a request, used up."""
        found = next((fault for fault in self.faults if fault.where == where), None)
        if found:
            self.faults.remove(found)
        return found

    def stored(self, sha256: str) -> bytes | None:
        """A large file by its hash."""
        files = (data for repo in self.repos.values() for data in repo.files.values())
        return next((data for data in files if hashlib.sha256(data).hexdigest() == sha256), None)

    def close(self) -> None:
        """Stop both servers."""
        for server in (self._hub, self._storage):
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: FakeHub) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is none."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        for where, form, answer in (("storage", _STORED, self._send_stored),
                                    ("api", _API, self._send_info),
                                    ("resolve", _RESOLVE, self._send_file)):
            found = form.fullmatch(path)
            if found:
                self._note(where, path)
                fault = self.server.hub.fault(where)
                if fault and fault.status:
                    return self._send(fault.status, b"{}", dict(fault.headers))
                return answer(found, fault)
        self._note("other", path)
        return self._send(404, b"{}", {})

    def _note(self, where: str, path: str) -> None:
        self.server.hub.requests.append(Seen(self.command, path, dict(self.headers), where))

    def _repo(self, name: str, file: bool) -> Repo | None:
        """The repository, unless the answer has been given: it is not for everyone."""
        repos = self.server.hub.repos
        repo = next((repos[known] for known in repos if known.lower() == name.lower()), None)
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repo and (not repo.token or given == repo.token or (repo.gated and not file)):
            return repo
        code = "GatedRepo" if repo and repo.gated else "RepoNotFound"
        status = 401 if not given else 403 if code == "GatedRepo" else 404
        self._send(status, b"{}", {"X-Error-Code": code})
        return None

    def _send_info(self, found: re.Match[str], fault: Fault | None) -> None:
        repo = self._repo(found["repo"], file=False)
        if not repo:
            return
        if (found["revision"] or "main") not in ("main", repo.sha):
            return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        listed = [_listing(path, data, repo) for path, data in repo.files.items()]
        info = {"_id": "1", "id": repo.name, "sha": repo.sha, "siblings": listed}
        body = fault.body if fault and fault.body is not None else json.dumps(info).encode()
        self._send(200, body, {"Content-Type": "application/json"}, fault)

    def _send_file(self, found: re.Match[str], fault: Fault | None) -> None:
        repo = self._repo(found["repo"], file=True)
        if not repo:
            return
        data = repo.files.get(found["path"])
        if data is None:
            return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        sha256 = hashlib.sha256(data).hexdigest()
        self._send(302, b"", {
            "X-Repo-Commit": repo.sha, "X-Linked-Size": str(len(data)), "ETag": '"pointer"',
            "X-Linked-Etag": f'"{sha256}"',
            "Location": f"{self.server.hub.storage_url}/storage/{sha256}"}, fault)

    def _send_stored(self, found: re.Match[str], fault: Fault | None) -> None:
        data = self.server.hub.stored(found["sha256"])
        if data is None:
            return self._send(404, b"", {})
        if fault and fault.body is not None:
            data = fault.body
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not asked or (fault and fault.whole):
            return self._send(200, data, {"ETag": f'"{found["sha256"]}"'}, fault)
        start = int(asked[1])
        if start >= len(data):
            return self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        place = f"bytes {start}-{len(data) - 1}/{len(data)}"
        return self._send(206, data[start:], {"Content-Range": place}, fault)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str],
              fault: Fault | None = None) -> None:
        if fault and fault.hold and fault.cut is None:
            fault.reached.set()
            fault.hold.wait(PATIENCE)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if not fault or fault.cut is None:
            self.wfile.write(body)
            return
        self.wfile.write(body[:fault.cut])
        fault.reached.set()
        if fault.hold and fault.hold.wait(PATIENCE):
            self.wfile.write(body[fault.cut:])
        else:
            self.close_connection = True


def _listing(path: str, data: bytes, repo: Repo) -> dict[str, Any]:
    pointer = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    large = {"lfs": pointer} if path.endswith(".gguf") else {}
    found = {"rfilename": path, "size": len(data), "blobId": "0" * 40, **large}
    return {**found, **repo.listed.get(path, {})}


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A hub that runs within the ``with`` statement."""
    hub = FakeHub()
    try:
        yield hub
    finally:
        hub.close()
