"""Packed bodies: unpacked up to the limit, whatever they claim, in time and memory of the limit."""

from __future__ import annotations

import gzip
import struct
import sys
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.unpacking import decoders, unpacked
from app.errors import GatewayError, Kind

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 2**20
TEXT = b'{"model":"m","messages":[]}' * 9
SKIPPABLE = struct.pack("<II", 0x184D2A50, 5) + b"hello"  # RFC 8878, section 3.1.2


def packed(data: bytes) -> bytes:
    """As gzip packs it, without the time, which would make each run's tests others."""
    return gzip.compress(data, mtime=0)


PACKERS = {"gzip": packed, "x-gzip": packed, "zstd": zstd.compress}
EACH = pytest.mark.parametrize("coding", PACKERS)


def plain(coding: str, raw: bytes, limit: int = MIB) -> bytes | None:
    """What the body holds; None where it is over the limit."""
    new = decoders(coding)
    assert new is not None
    found = unpacked(raw, new, limit)
    return None if found is None else bytes(found)


def framed(size: int, level: int = 3) -> bytes:
    """A zstd frame of zeros that does not say how many."""
    packer = zstd.ZstdCompressor(level=level)
    return packer.compress(bytes(size)) + packer.flush()


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_what_is_not_packed_needs_nothing(coding: str) -> None:
    """No header, or the one that says so."""
    assert decoders(coding) is None


@pytest.mark.parametrize("coding", [
    "br", "deflate", "compress", "gzip, zstd", "gzip,gzip", "identity, gzip", "gzip;q=1", "zst",
    "*", "gzip\xe9", "x" * 1000])
def test_other_codings_are_refused(coding: str) -> None:
    """With those that are known."""
    with pytest.raises(GatewayError, match="gzip, zstd, not with") as raised:
        decoders(coding)
    assert raised.value.kind is Kind.UNSUPPORTED_CODING and len(raised.value.message) < 200


@EACH
@pytest.mark.parametrize("text", [b"", b"x", TEXT, bytes(MIB), TEXT * 3000], ids=len)
def test_what_was_packed_is_unpacked(coding: str, text: bytes) -> None:
    """Byte for byte, in whatever case the coding is written."""
    raw = PACKERS[coding](text)
    assert plain(coding, raw) == plain(f" {coding.upper()} ", raw) == text


@EACH
@settings(max_examples=50, deadline=None)
@given(parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=5))
def test_parts_follow_each_other(coding: str, parts: list[bytes]) -> None:
    """As the formats allow."""
    raw = b"".join(map(PACKERS[coding], parts))
    assert plain(coding, raw) == b"".join(parts)


def test_frames_to_skip_are_skipped() -> None:
    """They hold nothing."""
    assert plain("zstd", SKIPPABLE + zstd.compress(TEXT) + SKIPPABLE) == TEXT


@EACH
@pytest.mark.parametrize(("size", "fits"), [(999, True), (1000, True), (1001, False)])
def test_the_limit_is_that_of_the_unpacked_body(coding: str, size: int, fits: bool) -> None:
    """One byte more is too much, also where several parts share it."""
    text = bytes(size)
    for raw in (PACKERS[coding](text), PACKERS[coding](text[:500]) + PACKERS[coding](text[500:])):
        assert plain(coding, raw, 1000) == (text if fits else None)


def damaged(coding: str) -> list[bytes]:
    """Bodies that are not what they are said to be."""
    good = PACKERS[coding](TEXT)
    return [good[:-1], good[:len(good) // 2], good[:5], good[:1], good + b"x", good + good[:-1],
            b"x" + good, TEXT, b"\0" * 100, good[:-6] + b"\xff" * 6, zlib.compress(TEXT),
            good[:20] + b"\0\0\0\0" + good[24:]]


@pytest.mark.parametrize(("coding", "raw"), [
    (coding, raw) for coding in ("gzip", "zstd") for raw in damaged(coding)])
def test_damage_is_refused(coding: str, raw: bytes) -> None:
    """Cut, mixed up, or with something behind it: never a part as if it were the whole."""
    try:
        found = plain(coding, raw)
    except GatewayError as error:
        assert error.kind is Kind.INVALID_BODY
    else:
        # zstd has no checksum unless asked for one, so a changed byte can be another text.
        assert coding == "zstd" and len(raw) == len(zstd.compress(TEXT)) and found != TEXT


@EACH
def test_one_coding_is_not_taken_for_the_other(coding: str) -> None:
    """The header decides, not what the bytes look like."""
    other = "zstd" if "gzip" in coding else "gzip"
    with pytest.raises(GatewayError):
        plain(coding, PACKERS[other](TEXT))


BOMBS = {
    "gzip": ("gzip", gzip.compress(bytes(32 * MIB), 9)),
    "zstd": ("zstd", framed(32 * MIB)),
    "gzip_parts": ("gzip", gzip.compress(bytes(MIB // 2)) * 60),
    "zstd_parts": ("zstd", framed(MIB // 2) * 60),
}


@pytest.mark.parametrize(("coding", "raw"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_costs_no_more_than_the_limit(coding: str, raw: bytes) -> None:
    """It is dropped as soon as it is over it."""
    tracemalloc.start()
    try:
        assert plain(coding, raw, MIB) is None
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("coding", "raw"), [
    ("gzip", gzip.compress(b"") * 30_000), ("zstd", zstd.compress(b"") * 30_000),
    ("zstd", SKIPPABLE * 30_000)], ids=["gzip", "zstd", "skippable"])
def test_parts_without_end_are_refused(coding: str, raw: bytes) -> None:
    """A part costs more than its bytes, so there is a limit of parts."""
    with pytest.raises(GatewayError, match="is not packed as"):
        plain(coding, raw, MIB)


def test_a_window_larger_than_http_allows_is_refused() -> None:
    """It would cost its size in memory, whatever the body holds (RFC 9659)."""
    options = {zstd.CompressionParameter.window_log: 27}
    packer = zstd.ZstdCompressor(options=options)
    raw = packer.compress(b"x" * 1000) + packer.flush()
    with pytest.raises(GatewayError):
        plain("zstd", raw)
