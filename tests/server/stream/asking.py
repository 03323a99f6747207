"""How the tests of streams ask: over a connection that stays open, and by an older HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.fakes.raw_client import RawAnswer, RawClient, request_bytes
from tests.server.calls import JSON
from tests.server.stream.apis import CHAT, Api

HTTP_10, HTTP_11 = "HTTP/1.0", "HTTP/1.1"


def ask(client: RawClient, api: Api = CHAT, version: str = HTTP_11, stream: bool = True,
        headers: Iterable[tuple[str, str]] = JSON) -> RawAnswer:
    """Send a request of this API; the head of the answer is there, its body still arrives."""
    send(client, api, version, stream, headers)
    answer = client.answer()
    if version == HTTP_10:
        assert not answer.all("Transfer-Encoding"), "HTTP/1.0 knows no chunks"
    return answer


def send(client: RawClient, api: Api = CHAT, version: str = HTTP_11, stream: bool = True,
         headers: Iterable[tuple[str, str]] = JSON) -> None:
    """Send a request of this API and wait for nothing."""
    body = api.body(stream=True) if stream else api.body()
    request = request_bytes("POST", api.path, [("Host", client.host), *headers], body)
    client.send(request.replace(HTTP_11.encode(), version.encode(), 1))


def read_up_to(answer: RawAnswer, size: int) -> bytes:
    """At least this much of the body, or all of it where it ends before."""
    got = bytearray()
    while len(got) < size and (piece := next(answer.pieces(), b"")):
        got += piece
    return bytes(got)


@contextmanager
def in_background(job: threading.Thread) -> Iterator[None]:
    """Run it until the context is left; raises AssertionError where it does not end."""
    job.start()
    try:
        yield
    finally:
        job.join(20)
        assert not job.is_alive(), "a thread of the test hangs"
