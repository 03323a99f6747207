"""Images and audio clips: base64 in, a part of an OpenAI message out."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from app.api.ollama.request.images import part
from tests.unit.ollama.request_cases import PNG, refusal


def encoded(head: bytes) -> str:
    """`head` with some more bytes, as base64."""
    return base64.b64encode(head + bytes(range(48))).decode()


IMAGES = [
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff\xe0", "jpeg"),
    (b"\xff\xd8\xff\xdb", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM\x36\0\0\0", "bmp"),
    (b"RIFF\0\0\0\0AVI ", "jpeg"),
    (b"\0\0\0\x18ftypisom", "jpeg"),
    (b"nothing known", "jpeg"),
]
CLIPS = [
    (b"RIFF\x24\0\0\0WAVEfmt ", "wav"),
    (b"ID3\x04", "mp3"),
    (b"\xff\xfb\x90\x64", "mp3"),
    (b"\xff\xf3\x40\xc0", "mp3"),
    (b"fLaC\0\0\0\x22", "flac"),
    (b"OggS\0\x02", "ogg"),
]


@pytest.mark.parametrize(("head", "kind"), IMAGES)
def test_an_image_becomes_a_data_url(head: bytes, kind: str) -> None:
    """Its type is told by its bytes; what is not known counts as JPEG."""
    text = encoded(head)
    url = {"url": f"data:image/{kind};base64,{text}"}
    assert part(text) == {"type": "image_url", "image_url": url}


@pytest.mark.parametrize(("head", "kind"), CLIPS)
def test_a_clip_becomes_input_audio(head: bytes, kind: str) -> None:
    """Audio travels among the images."""
    text = encoded(head)
    assert part(text) == {"type": "input_audio", "input_audio": {"data": text, "format": kind}}


@pytest.mark.parametrize("text", [
    f"data:image/png;base64,{PNG}",
    f"data:;base64,{PNG}",
    f"DATA:image/jpeg;charset=x;BASE64,{PNG}",
    f"{PNG}\n",
    "\r\n".join((PNG[:4], PNG[4:], "")),
])
def test_a_prefix_and_line_ends_are_passed_over(text: str) -> None:
    """What the bytes say counts, not what the prefix says."""
    assert part(text)["image_url"]["url"] == f"data:image/png;base64,{PNG}"


@pytest.mark.parametrize(("text", "position"), [
    ("", 0),
    ("data:image/png;base64,", 0),
    ("a", 0),
    ("aGVsbG8", 4),
    ("aGVsbG8h!", 8),
    ("aGVs bG8h", 4),
    ("aGVs-_8h", 4),
    ("aGVs=bG8h", 5),
    ("aGVsb=", 5),
    ("aGVsbG8h=", 8),
    ("aGVsbA===", 8),
    ("data:image/png,aGVs", 4),
    (f"data:{'x' * 300};base64,{PNG}", 4),
    ("aGVsbG8hé", 8),
    ("aGVs\u0661\u0661\u0661\u0661", 4),
])
def test_broken_base64_is_refused(text: str, position: int) -> None:
    """With Go's words and the place where it breaks."""
    assert refusal(part, text) == f"illegal base64 data at input byte {position}"


@pytest.mark.parametrize("value", [None, 5, True, [], {"data": PNG}])
def test_what_is_no_text_is_refused(value: Any) -> None:
    """An image is one text."""
    assert refusal(part, value) == "an image must be a text in base64"


def test_a_long_broken_image_is_refused() -> None:
    """The place is found however long the text is."""
    text = "A" * 20_000_000 + "!"
    assert refusal(part, text) == "illegal base64 data at input byte 20000000"
