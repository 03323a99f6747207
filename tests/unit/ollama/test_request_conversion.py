"""Images that engines cannot read are made into PNG, or refused with a reason."""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

import pytest

from app.api.ollama.request import images
from tests.unit.ollama.request_cases import refusal

HEIC = base64.b64encode(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic").decode()
BROKEN = base64.b64encode(b"RIFF\x20\0\0\0WEBPVP8 " + bytes(20)).decode()
SIZE = (7, 5)


@pytest.fixture
def pillow() -> Any:
    """Pillow's Image module; the extra is optional."""
    return pytest.importorskip("PIL.Image")


def picture(library: Any, kind: str, mode: str, **how: Any) -> str:
    """A red picture in base64."""
    out = io.BytesIO()
    library.new(mode, SIZE, 200 if mode == "L" else "red").save(out, kind, **how)
    return base64.b64encode(out.getvalue()).decode()


@pytest.mark.parametrize("kind", ["WEBP", "AVIF"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_a_foreign_image_becomes_png(pillow: Any, kind: str, mode: str) -> None:
    """The picture stays what it is, in a format that every engine reads."""
    media = images.read(picture(pillow, kind, mode))
    assert media.kind == "png"
    with pillow.open(io.BytesIO(base64.b64decode(media.data))) as made:
        assert (made.format, made.size) == ("PNG", SIZE)
        red, green, blue = made.convert("RGB").getpixel((3, 2))
        assert red > 190 and (green < 10 and blue < 10 or mode == "L")


def test_the_first_picture_of_several_counts(pillow: Any) -> None:
    """An animation is a still then."""
    more = [pillow.new("RGB", SIZE, "blue")]
    media = images.read(picture(pillow, "WEBP", "RGB", save_all=True, append_images=more))
    with pillow.open(io.BytesIO(base64.b64decode(media.data))) as made:
        assert made.convert("RGB").getpixel((3, 2))[2] < 60


def test_a_broken_image_is_refused(pillow: Any) -> None:
    """A damaged file is the client's fault."""
    assert refusal(images.read, BROKEN).startswith("decode webp image: ")


def test_every_cut_of_an_image_is_refused(pillow: Any) -> None:
    """However the decoder fails, it is a refusal."""
    for kind in ("WEBP", "AVIF"):
        whole = base64.b64decode(picture(pillow, kind, "RGB"))
        for end in range(12, len(whole) - 1, 7):
            assert "image" in refusal(images.read, base64.b64encode(whole[:end]).decode())


def test_a_huge_image_is_refused(pillow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture of more pixels than there is memory for is not decoded."""
    monkeypatch.setattr("app.api.ollama.request.conversion._MOST_PIXELS", 34)
    text = picture(pillow, "WEBP", "RGB")
    assert refusal(images.read, text) == "decode webp image: it has more than 34 pixels"


def test_a_format_without_a_decoder_is_refused(pillow: Any) -> None:
    """Pillow alone does not read HEIC."""
    pillow.init()
    if "HEIF" in pillow.OPEN:
        pytest.skip("a plugin reads it here")
    assert refusal(images.read, HEIC) == (
        "heic images cannot be read by the engine nor converted by the gateway with this Pillow; "
        "send PNG or JPEG")


@pytest.mark.parametrize(("text", "kind"), [(BROKEN, "webp"), (HEIC, "heic")])
def test_without_pillow_the_remedy_is_told(
        text: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names what is missing and what can be sent instead."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "PIL.Image", raising=False)
    assert refusal(images.read, text) == (
        f"{kind} images cannot be read by the engine nor converted by the gateway without Pillow, "
        "its extra 'images'; send PNG or JPEG")
