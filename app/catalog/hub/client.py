"""The way to the hub: huggingface_hub, asked for what a repository holds and for bytes of a file.

Address, token, proxies and certificates are the library's business (HF_ENDPOINT, HF_TOKEN,
HTTPS_PROXY, SSL_CERT_FILE). Bytes come by plain HTTP, as its own download keeps no part of a file
that was interrupted; the hub serves files of its Xet storage that way too.
"""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.catalog.hub.failures import mapped, of_content
from app.catalog.manifest import FileEntry
from app.catalog.problems import HubUnavailable

if TYPE_CHECKING:
    import httpx2

_BEGIN = re.compile(r"bytes (\d+)-")
_AGENT = "loop-gateway"
_CONNECT = 10.0  # s
_SILENCE = 30.0  # s without a byte


@dataclass(frozen=True)
class Repository:
    """What a revision of a repository holds. ``commit`` names it for good.

    ``files``: those with a SHA-256, which are all of any size.
    """

    name: str
    commit: str
    files: tuple[FileEntry, ...]


@dataclass(frozen=True)
class Body:
    """Bytes of a file as they arrive, of which the first is at ``start``.

    ``interrupt`` ends the wait for more of them, from another thread; it never blocks.
    """

    start: int
    pieces: Iterator[bytes]
    interrupt: Callable[[], None]


class Hub:
    """One hub; without ``endpoint`` the one of HF_ENDPOINT. Safe to use from many threads.

    Raises HubUnavailable where huggingface_hub is not installed.
    """

    def __init__(self, endpoint: str | None = None, silence: float = _SILENCE) -> None:
        # Otherwise the library asks the hub which programs to recognise, before anything else.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise HubUnavailable("pulling models takes the package huggingface-hub: install it "
                                 "with pip install 'loop-gateway[pull]'") from error
        self._api = HfApi(endpoint=endpoint, library_name=_AGENT, library_version="1")
        self._silence = silence

    @property
    def endpoint(self) -> str:
        """The address of the hub."""
        return str(self._api.endpoint)

    def repository(self, repo: str, revision: str) -> Repository:
        """What a repository holds; blocks for the answer.

        Raises NotFound, HubRefused and HubUnavailable.
        """
        with of_content(self.endpoint), mapped(self.endpoint, repo, revision):
            info = self._api.model_info(
                repo, revision=revision, files_metadata=True, timeout=self._silence)
            files = tuple(
                FileEntry(file.rfilename, int(file.lfs.size), str(file.lfs.sha256).lower())
                for file in info.siblings or () if file.lfs)
            if not info.sha:
                raise ValueError("no commit")
            # The hub finds a repository by any case of its name, and by a former name.
            name = str(info.id) if str(info.id).lower() == repo.lower() else repo
            return Repository(name, str(info.sha), files)

    @contextmanager
    def body(self, repository: Repository, path: str, start: int) -> Iterator[Body]:
        """The bytes of a file from ``start`` on, or from its beginning if the hub cannot do that.

        Raises NotFound, HubRefused, HubUnavailable, and WrongContent where the file ends before
        ``start``; also while they are read: each piece blocks until it is there or the hub was
        silent for too long.
        """
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        url = hf_hub_url(repository.name, path, revision=repository.commit, endpoint=self.endpoint)
        headers = build_hf_headers(library_name=_AGENT, library_version="1", headers={
            "Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})})
        with mapped(self.endpoint, repository.name, repository.commit):
            asked = get_session().stream("GET", url, headers=headers, timeout=self._timeout())
            with asked as answer:
                hf_raise_for_status(answer)
                begin = _start(answer.headers.get("Content-Range", ""))
                yield Body(begin, answer.iter_raw(), _interrupting(answer))

    def _timeout(self) -> "httpx2.Timeout":
        import httpx2

        return httpx2.Timeout(self._silence, connect=min(_CONNECT, self._silence))


def _start(content_range: str) -> int:
    found = _BEGIN.match(content_range)
    return int(found[1]) if found else 0


def _interrupting(answer: "httpx2.Response") -> Callable[[], None]:
    """What shuts the connection of the answer down, where its transport tells the socket."""
    stream = answer.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream else None

    def interrupt() -> None:
        with suppress(OSError):  # closed already
            if connection is not None:
                # Not TLS's own, which would say goodbye under the feet of the thread that reads.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    return interrupt
