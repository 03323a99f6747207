"""Files are uploaded by POST /api/blobs, whatever their size, and checked while they come."""

from __future__ import annotations

import time

import pytest

from app.catalog.store.blobs import Blobs
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.whole_gguf import LARGE, OTHER, SMALL
from tests.server.calls import ollama_error
from tests.server.ollama.registry.asking import Registered, digest_of

SHA = "a" * 64
SLOW = 1.0  # s; server.body-timeout


def head(data: bytes, *lines: str) -> bytes:
    """The head of an upload."""
    return "\r\n".join([f"POST /api/blobs/{digest_of(data)} HTTP/1.1", "Host: x", *lines, "", ""]
                       ).encode()


def test_a_blob_that_is_uploaded_is_there(served: Registered) -> None:
    """It is larger than server.max-body allows other bodies to be."""
    assert not served.has_blob(LARGE)
    answer = served.upload(LARGE)
    assert (answer.status, answer.body) == (201, b"")
    assert served.has_blob(LARGE) and len(served.blobs()) == 1
    answer = served.upload(LARGE)
    assert (answer.status, answer.body) == (200, b"")


def test_a_digest_in_other_letters(served: Registered) -> None:
    """Is the same one."""
    digest = digest_of(SMALL).replace("sha256:", "sha256-").upper().replace("SHA", "sha")
    assert served.upload(SMALL, digest).status == 201 and served.has_blob(SMALL)


def test_chunks(served: Registered) -> None:
    """Need no length before them; the next request on the connection is found behind them."""
    with RawClient(served.url) as client:
        client.send(head(OTHER, "Transfer-Encoding: chunked"))
        for begin in range(0, len(OTHER), 100):
            piece = OTHER[begin:begin + 100]
            client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
        assert client.answer("POST").whole().status == 201
        assert client.request("GET", "/api/version").whole().status == 200
    assert served.has_blob(OTHER)


@pytest.mark.parametrize("data", [b"", SMALL[:-1], SMALL + b"x", LARGE], ids=len)
def test_other_bytes_than_the_digest_says(served: Registered, data: bytes) -> None:
    """Are no blob, and nothing is left of them."""
    answer = served.upload(data, digest_of(SMALL))
    assert answer.status == 400
    assert ollama_error(answer) == (
        f'digest mismatch, expected "{digest_of(SMALL)}", got "{digest_of(data)}"')
    assert served.blobs() == set()


@pytest.mark.parametrize("digest", ["sha256:abc", f"md5:{SHA}", f"sha256:{SHA}0", "sha256:..", "x",
                                    "sha256:" + "g" * 64, "%2e%2e%2fx", "..%2F..%2Fx", "a%00b"])
def test_what_is_no_digest(served: Registered, digest: str) -> None:
    """Is a 400, or no place at all."""
    for method in ("POST", "HEAD"):
        answer = fetch(served.url, method, f"/api/blobs/{digest}", b"x")
        assert answer.status in ((404,) if "%2" in digest.lower() else (400,))
    assert served.blobs() == set()


def test_a_blob_that_is_not_there(served: Registered) -> None:
    """Is a 404 without a body."""
    answer = fetch(served.url, "HEAD", f"/api/blobs/sha256:{SHA}")
    assert (answer.status, answer.body) == (404, b"")


@pytest.mark.parametrize("framing", [f"Content-Length: {len(SMALL)}", "Transfer-Encoding: chunked"])
def test_an_upload_that_is_cut(served: Registered, framing: str) -> None:
    """Leaves nothing."""
    with RawClient(served.url) as client:
        begin = b"100\r\n" if "chunked" in framing else b""
        client.send(head(SMALL, framing) + begin + SMALL[:100])
        wait_until(lambda: served.blobs(), "the first bytes")
        client.end()
        assert client.answer("POST").whole().status == 400
    assert served.blobs() == set()


def test_an_upload_that_stops(served: Registered) -> None:
    """Has server.body-timeout for its next piece."""
    with RawClient(served.url) as client:
        client.send(head(SMALL, f"Content-Length: {len(SMALL)}") + SMALL[:100])
        assert client.answer("POST").whole().status == 408
    assert served.blobs() == set()


def test_an_upload_that_takes_its_time(served: Registered) -> None:
    """May take longer than server.body-timeout in all, as long as bytes come."""
    piece, begun = 80_000, time.monotonic()
    with RawClient(served.url) as client:
        client.send(head(LARGE, f"Content-Length: {len(LARGE)}"))
        for begin in range(0, 5 * piece, piece):
            client.send(LARGE[begin:begin + piece])
            time.sleep(SLOW * 0.25)
        client.send(LARGE[5 * piece:])
        assert client.answer("POST").whole().status == 201
    assert time.monotonic() - begun > SLOW and served.has_blob(LARGE)


def test_a_blob_for_which_there_is_no_room(served: Registered) -> None:
    """Is refused before it comes."""
    with RawClient(served.url) as client:
        client.send(head(SMALL, f"Content-Length: {10**18}"))
        answer = client.answer("POST").whole()
    assert answer.status == 507 and "MB free" in ollama_error(answer)
    assert served.blobs() == set()


def test_a_packed_blob(served: Registered) -> None:
    """Is not unpacked: its digest would be another's."""
    coded = [("Content-Encoding", "gzip")]
    answer = fetch(served.url, "POST", f"/api/blobs/{digest_of(SMALL)}", SMALL, coded)
    assert answer.status == 415 and served.blobs() == set()


def test_two_uploads_of_the_same(served: Registered) -> None:
    """Are one blob; the second waits for the first, and takes over where that is cut."""
    with RawClient(served.url) as first, RawClient(served.url) as second:
        for client in (first, second):
            client.send(head(LARGE, f"Content-Length: {len(LARGE)}") + LARGE[:100])
        wait_until(lambda: served.blobs(), "the first bytes")
        first.close()
        second.send(LARGE[100:])
        answer = second.answer("POST").whole()
    assert answer.status in (200, 201) or served.upload(LARGE).status == 201
    assert served.has_blob(LARGE)


def test_an_upload_that_waits_for_another(served: Registered) -> None:
    """Of the same, ends with its client, however long that one takes."""
    with Blobs(served.home) as blobs, RawClient(served.url) as client:
        made = blobs.try_open(digest_of(SMALL))
        assert made
        client.send(head(SMALL, f"Content-Length: {len(SMALL)}") + SMALL)
        client.end()
        assert client.answer("POST").whole().status == 499
        made.close()
    assert served.blobs() == set()
