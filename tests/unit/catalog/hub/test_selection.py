"""Which files of a repository are the model that was asked for."""

from __future__ import annotations

import pytest

from app.catalog.hub.selection import ORDER, select
from app.catalog.manifest import FileEntry
from app.catalog.problems import BadFile, NotFound


def files(*paths: str) -> list[FileEntry]:
    """These files, as a repository lists them."""
    return [FileEntry(path, 1, f"{index:064x}") for index, path in enumerate(paths)]


def chosen(tag: str, *paths: str) -> list[str]:
    """The tag of the model that is chosen, then its files."""
    found = select("org/m", files(*paths), tag)
    return [found.tag, *(file.path for file in found.files)]


SPLIT = [f"Q8_0/m-Q8_0-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
UNSLOTH = ["m-Q4_K_M.gguf", "m-UD-Q4_K_XL.gguf", "BF16/m-BF16-00001-of-00002.gguf",
           "BF16/m-BF16-00002-of-00002.gguf", "mmproj-F16.gguf", "mmproj-BF16.gguf",
           "imatrix_unsloth.gguf", "README.md", "config.json"]
MRADERMACHER = ["m.i1-IQ2_M.gguf", "m.i1-Q4_K_M.gguf", "m.i1-Q6_K.gguf", "m.imatrix.gguf"]

ASKED = [
    ("", ["m-Q8_0.gguf", "m-Q4_K_M.gguf"], ["Q4_K_M", "m-Q4_K_M.gguf"]),
    ("", ["m-Q8_0.gguf", "m-Q4_0.gguf"], ["Q4_0", "m-Q4_0.gguf"]),
    ("", ["m-F16.gguf", "m-Q8_0.gguf"], ["Q8_0", "m-Q8_0.gguf"]),
    ("", ["m-Q2_K.gguf", "m-BF16.gguf"], ["BF16", "m-BF16.gguf"]),
    ("", ["m.gguf"], ["latest", "m.gguf"]),
    ("", ["m-Q9_X.gguf"], ["latest", "m-Q9_X.gguf"]),
    ("q8_0", ["m-q8_0.gguf", "m-Q4_K_M.gguf"], ["Q8_0", "m-q8_0.gguf"]),
    ("Q8_0", [*reversed(SPLIT), "m-Q4_K_M.gguf"], ["Q8_0", *SPLIT]),
    ("F16", ["m-fp16.gguf"], ["F16", "m-fp16.gguf"]),
    ("fp16", ["m-f16.gguf"], ["F16", "m-f16.gguf"]),
    ("", UNSLOTH, ["Q4_K_M", "m-Q4_K_M.gguf", "mmproj-F16.gguf"]),
    ("Q4_K_XL", UNSLOTH, ["UD-Q4_K_XL", "m-UD-Q4_K_XL.gguf", "mmproj-F16.gguf"]),
    ("ud-q4_k_xl", UNSLOTH, ["UD-Q4_K_XL", "m-UD-Q4_K_XL.gguf", "mmproj-F16.gguf"]),
    ("BF16", UNSLOTH, ["BF16", *UNSLOTH[2:4], "mmproj-F16.gguf"]),
    ("", MRADERMACHER, ["Q4_K_M", "m.i1-Q4_K_M.gguf"]),
    ("IQ2_M", MRADERMACHER, ["IQ2_M", "m.i1-IQ2_M.gguf"]),
    ("", ["m-imatrix-Q4_K_M.gguf", "m-Q8_0-imatrix.gguf"], ["Q4_K_M", "m-imatrix-Q4_K_M.gguf"]),
    ("", ["m-Q4_K_M.gguf", "mtp-m-Q4_K_M.gguf"], ["Q4_K_M", "m-Q4_K_M.gguf"]),
    ("m-Q8_0.gguf", ["m-Q8_0.gguf", "n-Q8_0.gguf"], ["m-Q8_0", "m-Q8_0.gguf"]),
    ("n-q8_0", ["m-Q8_0.gguf", "n-Q8_0.gguf"], ["n-Q8_0", "n-Q8_0.gguf"]),
    ("Q8_0/m-Q8_0-00002-of-00003.gguf", SPLIT, ["m-Q8_0", *SPLIT]),
    ("Q8_0", ["m-Q8_0.gguf", "old/m-Q8_0.gguf"], ["Q8_0", "m-Q8_0.gguf"]),
    ("", ["a/m-Q4_0.gguf", "a/mmproj-BF16.gguf", "mmproj-F16.gguf", "b/mmproj-F16.gguf"],
     ["Q4_0", "a/m-Q4_0.gguf", "a/mmproj-BF16.gguf"]),
    ("", ["m-Q4_0.gguf", "mmproj-m-Q8_0.gguf", "x/mmproj-F16.gguf"],
     ["Q4_0", "m-Q4_0.gguf", "mmproj-m-Q8_0.gguf"]),
    ("", ["Q4_K_M/model.gguf", "Q8_0/model.gguf"], ["Q4_K_M", "Q4_K_M/model.gguf"]),
]


@pytest.mark.parametrize(("tag", "paths", "found"), ASKED)
def test_what_is_chosen(tag: str, paths: list[str], found: list[str]) -> None:
    """The weights with part 1 first, and the projector that belongs to them."""
    assert chosen(tag, *paths) == found


@pytest.mark.parametrize("position", range(len(ORDER) - 1))
def test_the_order_without_a_tag(position: int) -> None:
    """Each quantisation goes before the next one of the order."""
    first, second = ORDER[position:position + 2]
    assert chosen("", f"m-{second}.gguf", f"m-{first}.gguf")[0] == first


@pytest.mark.parametrize(("tag", "paths", "said"), [
    ("", ["README.md", "model.safetensors"], "org/m has no GGUF files"),
    ("", ["mmproj-F16.gguf", "imatrix.gguf"], "org/m has no GGUF files"),
    ("Q5_0", ["m-Q8_0.gguf", "m-Q4_K_M.gguf"], "org/m has no 'Q5_0': it has Q4_K_M, Q8_0$"),
    ("4_K_M", ["m-Q4_K_M.gguf"], "has no '4_K_M'"),
    ("Q4_K", ["m-Q4_K_M.gguf"], "has no 'Q4_K'"),
    ("n-Q4_K_M.gguf", ["m-Q4_K_M.gguf"], "has no 'n-Q4_K_M.gguf'"),
    ("mmproj-F16", ["m-F16.gguf", "mmproj-F16.gguf"], "has no 'mmproj-F16'"),
    ("Q8_0", ["a-Q8_0.gguf", "b-Q8_0.gguf"],
     "several models that fit: choose one of its files, org/m:a-Q8_0 or org/m:b-Q8_0"),
    ("", ["a.gguf", "b.gguf"], "several models that fit"),
])
def test_what_is_not_there_is_told(tag: str, paths: list[str], said: str) -> None:
    """With what there is, so that the next try is right."""
    with pytest.raises(NotFound, match=said):
        chosen(tag, *paths)


def test_a_split_without_a_part_is_told() -> None:
    """Nothing that no engine could load is downloaded."""
    with pytest.raises(BadFile, match="Q8_0-00002-of-00003.gguf is missing"):
        chosen("Q8_0", SPLIT[0], SPLIT[2])
