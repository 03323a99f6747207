"""Images in formats that engines cannot read, made into PNG by Pillow, an optional extra."""

import importlib
import io
import struct
from typing import Any

from app.api.ollama.refusal import Refusal, invalid

_PILLOW_NAMES = {"webp": "WEBP", "avif": "AVIF", "heic": "HEIF"}
_MOST_PIXELS = 2**26  # of which RGBA takes 256 MiB; a small file can hold far more
# What Pillow and the decoders below it raised for damaged files.
_BROKEN = (OSError, ValueError, SyntaxError, RuntimeError, ArithmeticError, LookupError,
           EOFError, struct.error)


def to_png(data: bytes, kind: str) -> bytes:
    """The image as PNG, the first picture of several. Raises Refusal: broken, huge, no decoder."""
    library = _pillow(kind)
    try:
        with library.open(io.BytesIO(data), formats=[_PILLOW_NAMES[kind]]) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise invalid(f"decode {kind} image: it has more than {_MOST_PIXELS} pixels")
            out = io.BytesIO()
            image.save(out, "PNG", compress_level=1)
    except (*_BROKEN, library.DecompressionBombError) as error:
        raise invalid(f"decode {kind} image: {_reason(error)}") from error
    return out.getvalue()


def _pillow(kind: str) -> Any:
    """Pillow's Image module, loaded when the first such image comes. Raises Refusal."""
    try:
        library: Any = importlib.import_module("PIL.Image")
    except ImportError:
        raise _undecodable(kind, "without Pillow, its extra 'images'") from None
    library.init()
    if _PILLOW_NAMES[kind] not in library.OPEN:
        raise _undecodable(kind, "with this Pillow")
    return library


def _undecodable(kind: str, how: str) -> Refusal:
    return invalid(f"{kind} images cannot be read by the engine nor converted by the gateway {how};"
                   " send PNG or JPEG")


def _reason(error: Exception) -> str:
    """Without the address of an object, which Pillow's own message ends with."""
    return "not such an image" if "cannot identify" in str(error) else str(error)
