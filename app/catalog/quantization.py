"""Sizes and quantisations as Ollama writes them.

Sources: github.com/ollama/ollama, format/format.go and fs/ggml/type.go; llama.cpp's words for the
same file types, src/llama-model-loader.cpp (llama_model_ftype_name).
"""

import re

UNKNOWN = "unknown"

_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4",
    40: "Q1_0",
}
# What no rule turns into the name.
_IN_OTHER_WORDS = {
    "all F32": "F32", "Q2_K - Medium": "Q2_K", "MXFP4 MoE": "MXFP4_MOE",
    "IQ3_S mix - 3.66 bpw": "IQ3_M",
}
_IN_WORDS = re.compile(
    r"(?P<name>[A-Z0-9_]+)(?: - (?:(?P<size>[SML])(?:mall|edium|arge)|[\d.]+ bpw.*))?")


def of_file_type(number: int) -> str:
    """The name of a ``general.file_type``, "unknown" for one that Ollama has no name for."""
    return _FILE_TYPES.get(number, UNKNOWN)


def of_engine(words: str) -> str:
    """The name of what llama-server calls ``Q4_K - Medium``; "" for nothing."""
    plain = words.removeprefix("(guessed) ").strip()
    if not plain or plain in _IN_OTHER_WORDS:
        return _IN_OTHER_WORDS.get(plain, "")
    found = _IN_WORDS.fullmatch(plain)
    if not found:
        return UNKNOWN
    return f"{found['name']}_{found['size']}" if found["size"] else found["name"]


def parameter_size(count: int) -> str:
    """A number of parameters in short: 8030261312 → 8.0B, 137000000 → 137M; "" for none."""
    if count <= 0:
        return ""
    for unit, letter, decimals in ((10**9, "B", 1), (10**6, "M", 2), (10**3, "K", 0)):
        if count >= unit:
            quotient = count / unit
            return f"{quotient:.{0 if quotient.is_integer() else decimals}f}{letter}"
    return str(count)
