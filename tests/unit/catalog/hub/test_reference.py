"""Which model on the hub is meant by what people write."""

from __future__ import annotations

import pytest

from app.catalog.hub.reference import Reference, parse
from app.catalog.problems import BadName

MEANT = {
    "org/repo": Reference("org/repo"),
    "org/repo:Q4_K_M": Reference("org/repo", "Q4_K_M"),
    "org/repo:latest": Reference("org/repo"),
    "hf.co/org/repo:q8_0": Reference("org/repo", "q8_0"),
    "HF.co/org/repo": Reference("org/repo"),
    "huggingface.co/org/repo:UD-Q4_K_XL": Reference("org/repo", "UD-Q4_K_XL"),
    "https://huggingface.co/org/repo": Reference("org/repo"),
    "https://huggingface.co/org/repo/": Reference("org/repo"),
    "https://hf.co/org/repo:Q8_0": Reference("org/repo", "Q8_0"),
    "http://huggingface.co/org/repo?library=llama-cpp#x": Reference("org/repo"),
    "https://huggingface.co/org/repo/tree/v2": Reference("org/repo", "", "v2"),
    "https://huggingface.co/org/repo/blob/main/Q8_0/a%20b.gguf":
        Reference("org/repo", "Q8_0/a b.gguf"),
    "https://huggingface.co/org/repo/resolve/refs%2Fpr%2F1/a.gguf?download=true":
        Reference("org/repo", "a.gguf", "refs/pr/1"),
    "Org-1/Qwen2.5_Instruct.GGUF:model.q4": Reference("Org-1/Qwen2.5_Instruct.GGUF", "model.q4"),
}


@pytest.mark.parametrize(("text", "meant"), MEANT.items())
def test_what_is_meant(text: str, meant: Reference) -> None:
    """A repository, and where it is named a quantisation or a file, and a revision."""
    assert parse(text) == meant


@pytest.mark.parametrize("text", [
    "", "llama3", "org/", "/repo", "/etc/passwd", "org/repo/x", "org/repo/tree", "a/../b", "../b",
    "org/re po", "org/rep@main", "org/r:a/b", "org/répo", "org/repo\n", "org/re--po", "org/.repo",
    "org/repo.", "x" * 300 + "/repo", "org/" + "x" * 300, "https://example.org/org/repo",
    "hf.co/org", "https://huggingface.co/datasets/org/repo", "org/repo/blob/main/a.gguf:Q4",
    "org/r\udcff", "ftp://huggingface.co/org/repo", "org/repo:a:b"])
def test_what_means_nothing_is_refused(text: str) -> None:
    """In one sentence that can be printed and says what to write."""
    with pytest.raises(BadName, match="names no model on the hub: write ORG/REPO") as caught:
        parse(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
