"""What format an image or audio clip has, by its first bytes."""

AUDIO = frozenset({"wav", "mp3", "flac", "ogg"})
FOREIGN = frozenset({"webp", "avif", "heic"})  # images that llama.cpp's decoder cannot read

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"ID3", "mp3"),
    (b"fLaC", "flac"),
    (b"OggS", "ogg"),
)
_RIFF = {b"WEBP": "webp", b"WAVE": "wav"}
# ISO base media files name their brand after the box type (ISO 14496-12, MIAF).
_BRANDS = {
    b"avif": "avif", b"avis": "avif",
    b"heic": "heic", b"heix": "heic", b"hevc": "heic", b"mif1": "heic", b"msf1": "heic",
}


def kind_of(head: bytes) -> str:
    """The format's short name, "jpeg" for one that is not known; ``head``: at least 12 bytes."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "jpeg")
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "jpeg")
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:  # an MPEG audio frame
        return "mp3"
    return "jpeg"
