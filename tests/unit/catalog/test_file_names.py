"""What the names of files tell."""

from __future__ import annotations

import pytest

from app.catalog.file_names import (
    base_of, holds_weights, is_projector, label_of, split_of, stem_of)

LABELS = {
    "m-Q4_K_M.gguf": "Q4_K_M", "m.Q4_K_M.gguf": "Q4_K_M", "m_q4_k_m.gguf": "Q4_K_M",
    "m-q8_0.gguf": "Q8_0", "Q8_0.gguf": "Q8_0", "m-IQ2_XXS.gguf": "IQ2_XXS",
    "m-IQ4_NL.gguf": "IQ4_NL",
    "m-UD-Q4_K_XL.gguf": "UD-Q4_K_XL", "m.i1-Q3_K_L.gguf": "Q3_K_L", "m-TQ1_0.gguf": "TQ1_0",
    "m-F16.gguf": "F16", "m-bf16.gguf": "BF16", "m-fp16.gguf": "F16", "m-FP32.gguf": "F32",
    "m-MXFP4_MOE.gguf": "MXFP4_MOE", "gpt-mxfp4.gguf": "MXFP4", "m-NVFP4.gguf": "NVFP4",
    "m-Q4_0_4_4.gguf": "Q4_0_4_4", "m-q4.gguf": "Q4", "m-Q8_0-00001-of-00002.gguf": "Q8_0",
    "BF16/m-00001-of-00002.gguf": "BF16", "Q4_0/m-Q8_0.gguf": "Q8_0", "m-Q4_0-imat.gguf": "Q4_0",
    "Qwen2.5-7B.gguf": "", "m.gguf": "", "mQ4_0.gguf": "", "m-Q4_Klarinette.gguf": "", "": "",
}


@pytest.mark.parametrize(("path", "label"), LABELS.items())
def test_the_quantisation(path: str, label: str) -> None:
    """The last one of the name, else of its folder, in capitals."""
    assert label_of(path) == label


@pytest.mark.parametrize(("path", "stem", "base"), [
    ("m-Q4_K_M.gguf", "m-Q4_K_M", "m"), ("a/m.Q8_0.GGUF", "m.Q8_0", "m"), ("m.gguf", "m", "m"),
    ("m-UD-Q4_K_XL-00001-of-00003.gguf", "m-UD-Q4_K_XL", "m"), ("Q8_0.gguf", "Q8_0", "Q8_0"),
    ("m-fp16.gguf", "m-fp16", "m"), ("m-Q8_0-v2.gguf", "m-Q8_0-v2", "m-Q8_0-v2"),
    ("weights.bin", "weights.bin", "weights.bin")])
def test_the_stem(path: str, stem: str, base: str) -> None:
    """Without folder, part and ending; and without the quantisation at its end."""
    assert (stem_of(path), base_of(path)) == (stem, base)


@pytest.mark.parametrize("path", [
    "m.gguf", "m-1-of-3.gguf", "m-00000-of-00003.gguf", "m-00004-of-00003.gguf",
    "m-00001-of-01001.gguf", "m-00001-of-00003.bin", "-00001-of-00003.gguf"])
def test_what_is_no_part(path: str) -> None:
    """A whole file, or numbers that are none of a split."""
    assert split_of(path) is None


def test_the_parts_of_a_split() -> None:
    """Beside each other, whichever of them was given, with its ending."""
    found = split_of("a/m-00002-of-00003.GGUF")
    assert found and (found.part, found.parts) == (2, 3)
    assert found.all() == [f"a/m-0000{n}-of-00003.GGUF" for n in (1, 2, 3)]


@pytest.mark.parametrize(("path", "weights", "projector"), [
    ("m.gguf", True, False), ("mmproj-F16.gguf", False, True), ("x/M-mmproj-f16.gguf", False, True),
    ("mmproj.bin", False, False), ("README.md", False, False), ("m.gguf.part", False, False),
    ("imatrix.gguf", False, False), ("m-Q8_0-imatrix.gguf", False, False),
    ("imatrix-Q8_0.gguf", False, False), ("m-imatrix-Q8_0.gguf", True, False),
    ("mtp-m-Q8_0.gguf", False, False), ("m-eagle3-Q8_0.gguf", False, False),
    ("flashmtpish-Q4_0.gguf", True, False)])
def test_what_a_file_is(path: str, weights: bool, projector: bool) -> None:
    """A model, a projector, or neither."""
    assert (holds_weights(path), is_projector(path)) == (weights, projector)
