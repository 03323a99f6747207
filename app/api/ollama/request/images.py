"""Images and audio clips: Ollama's bare base64 as the parts of an OpenAI message."""

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from app.api.ollama.refusal import invalid
from app.api.ollama.request.conversion import to_png
from app.api.ollama.request.sniffing import AUDIO, FOREIGN, kind_of

_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*")
_HEAD = 64  # characters of base64, enough to tell the formats apart


@dataclass(frozen=True)
class Media:
    """One image or audio clip in a format that engines read; ``data`` is base64."""

    kind: str  # the format's short name, such as png or wav
    data: str = field(repr=False)


def part(text: Any) -> dict[str, Any]:
    """The content part for one image or audio clip. Raises Refusal."""
    media = read(text)
    if media.kind in AUDIO:
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": media.kind}}
    url = f"data:image/{media.kind};base64,{media.data}"
    return {"type": "image_url", "image_url": {"url": url}}


def read(text: Any) -> Media:
    """The image or clip in ``text``, base64 with or without a data URL's prefix. Raises Refusal.

    Formats that engines cannot read become PNG. An unknown format counts as JPEG, as in Ollama.
    """
    if not isinstance(text, str):
        raise invalid("an image must be a text in base64")
    data = _checked(text)
    kind = kind_of(base64.b64decode(data[:_HEAD]))
    if kind in FOREIGN:
        png = to_png(base64.b64decode(data), kind)
        return Media("png", base64.b64encode(png).decode())
    return Media(kind, data)


def _checked(text: str) -> str:
    """Standard base64 without a prefix and without line ends, which Go passes over as well."""
    prefix = _URL.match(text)
    bare = text[prefix.end():] if prefix else text
    match = _BASE64.match(bare)
    good = match.end() if match else 0
    if good < len(bare):
        raise _illegal(good)
    data = bare.replace("\r", "").replace("\n", "")
    if not data or len(data) % 4:
        pad = bare.find("=")
        raise _illegal(pad if pad >= 0 else len(bare) - len(data) % 4)
    return data


def _illegal(position: int) -> Exception:
    return invalid(f"illegal base64 data at input byte {position}")
