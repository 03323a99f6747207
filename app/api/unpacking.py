"""Request bodies that are packed: gzip (RFC 1952) and zstd (RFC 8878), bounded in size and time."""

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

from app.errors import GatewayError, Kind

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPTED = "gzip, zstd"  # for Accept-Encoding: what a request may be packed with
_PIECE = 65536  # bytes unpacked at once; so many are copied at the end of each part
_MAX_PARTS = 1024  # members or frames, of which any number may follow each other
_MAX_WINDOW = 23  # 2**23 bytes: what a decoder has to have for HTTP, and no more (RFC 9659)


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


Decoders = Callable[[], _Decoder]


def decoders(coding: str) -> Decoders | None:
    """What unpacks a Content-Encoding, part by part; None where nothing has to be.

    Raises GatewayError for one that is not known, and for several at once.
    """
    name = coding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in _KNOWN:
        text = f"a request body may be packed with {ACCEPTED}, not with '{name[:40]}'"
        raise GatewayError(Kind.UNSUPPORTED_CODING, text)
    return _KNOWN[name]


def unpacked(raw: bytes | bytearray, new: Decoders, limit: int) -> bytearray | None:
    """The unpacked bytes; None where they are more than ``limit``, which is noticed in time.

    Raises GatewayError where the body is broken or cut short.
    """
    try:
        return _unpacked(memoryview(raw), new, limit)
    except (zlib.error, zstd.ZstdError, EOFError):
        text = "the request body is not packed as its Content-Encoding says"
        raise GatewayError(Kind.INVALID_BODY, text) from None


def _unpacked(raw: memoryview, new: Decoders, limit: int) -> bytearray | None:
    found, at, parts = bytearray(), 0, 1
    decoder = new()
    while at < len(raw):
        if decoder.eof:
            decoder, parts = new(), parts + 1
        if parts > _MAX_PARTS:
            raise EOFError
        piece = raw[at:at + _PIECE]
        found += decoder.decompress(piece, limit + 1 - len(found))
        if len(found) > limit:
            return None
        at += len(piece) - len(decoder.unused_data)
    if not decoder.eof:
        raise EOFError
    return found


def _gzip() -> _Decoder:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS + 16)


def _zstd() -> _Decoder:
    options = {int(zstd.DecompressionParameter.window_log_max): _MAX_WINDOW}
    made: _Decoder = zstd.ZstdDecompressor(options=options)
    return made


_KNOWN: dict[str, Decoders] = {"gzip": _gzip, "x-gzip": _gzip, "zstd": _zstd}
