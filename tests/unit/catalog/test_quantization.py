"""Ollama's words for sizes and quantisations."""

from __future__ import annotations

import pytest

from app.catalog import quantization


@pytest.mark.parametrize(("count", "text"), [
    (0, ""), (-5, ""), (1, "1"), (999, "999"), (1000, "1K"), (1499, "1K"), (1501, "2K"),
    (22_700, "23K"), (999_999, "1000K"), (10**6, "1M"), (1_500_000, "1.50M"),
    (268_098_176, "268.10M"), (137_000_000, "137M"), (134_515_008, "134.52M"),
    (999_999_999, "1000.00M"), (10**9, "1B"), (7_000_000_000, "7B"), (8_030_261_312, "8.0B"),
    (30_532_122_624, "30.5B"), (70_553_706_496, "70.6B"), (671_026_404_352, "671.0B"),
    (10**12, "1000B"), (1_026_408_232_448, "1026.4B"),
    # Half to even of what the binary number is, as Go's and C's %.1f have it.
    (1_250_000_000, "1.2B"), (1_350_000_000, "1.4B"), (2_005_000, "2.00M"),
])
def test_a_count_is_shortened_as_ollama_does(count: int, text: str) -> None:
    """A whole quotient has no decimals."""
    assert quantization.parameter_size(count) == text


@pytest.mark.parametrize(("number", "name"), [
    (0, "F32"), (1, "F16"), (2, "Q4_0"), (3, "Q4_1"), (7, "Q8_0"), (8, "Q5_0"), (9, "Q5_1"),
    (10, "Q2_K"), (11, "Q3_K_S"), (12, "Q3_K_M"), (13, "Q3_K_L"), (14, "Q4_K_S"), (15, "Q4_K_M"),
    (16, "Q5_K_S"), (17, "Q5_K_M"), (18, "Q6_K"), (19, "IQ2_XXS"), (20, "IQ2_XS"), (21, "Q2_K_S"),
    (22, "IQ3_XS"), (23, "IQ3_XXS"), (24, "IQ1_S"), (25, "IQ4_NL"), (26, "IQ3_S"), (27, "IQ3_M"),
    (28, "IQ2_S"), (29, "IQ2_M"), (30, "IQ4_XS"), (31, "IQ1_M"), (32, "BF16"), (36, "TQ1_0"),
    (37, "TQ2_0"), (38, "MXFP4_MOE"), (39, "NVFP4"), (40, "Q1_0"),
    (4, "unknown"), (33, "unknown"), (-1, "unknown"), (1024, "unknown"), (2**64 - 1, "unknown"),
])
def test_a_file_type_has_ollamas_name(number: int, name: str) -> None:
    """One that Ollama does not know is not guessed."""
    assert quantization.of_file_type(number) == name


@pytest.mark.parametrize(("words", "name"), [
    ("all F32", "F32"), ("F16", "F16"), ("BF16", "BF16"), ("Q4_0", "Q4_0"), ("Q8_0", "Q8_0"),
    ("Q2_K - Medium", "Q2_K"), ("Q2_K - Small", "Q2_K_S"), ("Q3_K - Small", "Q3_K_S"),
    ("Q3_K - Medium", "Q3_K_M"), ("Q3_K - Large", "Q3_K_L"), ("Q4_K - Medium", "Q4_K_M"),
    ("Q5_K - Small", "Q5_K_S"), ("Q6_K", "Q6_K"), ("TQ1_0 - 1.69 bpw ternary", "TQ1_0"),
    ("IQ2_XXS - 2.0625 bpw", "IQ2_XXS"), ("IQ4_NL - 4.5 bpw", "IQ4_NL"),
    ("IQ3_S - 3.4375 bpw", "IQ3_S"), ("IQ3_S mix - 3.66 bpw", "IQ3_M"), ("MXFP4 MoE", "MXFP4_MOE"),
    ("NVFP4", "NVFP4"), ("(guessed) Q4_K - Medium", "Q4_K_M"), ("(guessed) all F32", "F32"),
    ("unknown, may not work", "unknown"), ("something new", "unknown"), ("", ""), ("  ", ""),
])
def test_the_engines_words_become_ollamas(words: str, name: str) -> None:
    """llama-server says Small, Medium and Large, and how many bits a weight has."""
    assert quantization.of_engine(words) == name
