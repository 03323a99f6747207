"""What the names of a model's files tell: parts of a split, projectors, quantisations.

The customs are llama.cpp's (common/download.cpp) and those of the hub (huggingface.js,
packages/tasks/src/gguf.ts).
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_SPLIT = re.compile(
    r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})(?P<ending>\.gguf)", re.IGNORECASE)
_MOST_PARTS = 1000
_PROJECTOR = "mmproj"  # a multimodal projector lies beside the weights and is not the model
# Files that are of use only beside a model: drafts for speculation.
_DRAFT = re.compile(r"(^|[-_.])(mtp|eagle3|dflash|dspark)-", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:^|[-_.])(?P<label>(?:UD-)?[IT]?Q\d(?:_(?:K|NL|XXS|XS|XL|S|M|L|P|\d))*"
    r"|B?F16|F32|FP16|FP32|MXFP4(?:_MOE)?|NVFP4)(?=$|[-.])", re.IGNORECASE)
_SAME = {"FP16": "F16", "FP32": "F32"}


@dataclass(frozen=True)
class Split:
    """One part of a split model: what the names of all parts begin with, which one, of how many."""

    stem: str
    part: int
    parts: int
    ending: str

    def all(self) -> list[str]:
        """The names of all parts, in order."""
        last = f"-of-{self.parts:05d}{self.ending}"
        return [f"{self.stem}-{number:05d}{last}" for number in range(1, self.parts + 1)]


def split_of(path: str) -> Split | None:
    """What a path says of a split; None for a whole file."""
    found = _SPLIT.fullmatch(path)
    if not found or not 0 < int(found["part"]) <= int(found["parts"]) <= _MOST_PARTS:
        return None
    return Split(found["stem"], int(found["part"]), int(found["parts"]), found["ending"])


def stem_of(path: str) -> str:
    """The last part of a path without its ending and without the number of a part."""
    split = split_of(path)
    name = PurePosixPath(split.stem if split else path).name
    return name if split or not is_gguf(name) else name[:-len(".gguf")]


def base_of(path: str) -> str:
    """``stem_of`` without the quantisation at its end."""
    stem = stem_of(path)
    ends = [match.start() for match in _LABEL.finditer(stem) if match.end() == len(stem)]
    return stem[:ends[0]] if ends and ends[0] else stem


def is_gguf(path: str) -> bool:
    """Whether a path ends as those of GGUF files do."""
    return path.lower().endswith(".gguf")


def is_projector(path: str) -> bool:
    """Whether a file sees or hears for a model."""
    return is_gguf(path) and _PROJECTOR in PurePosixPath(path).name.lower()


def holds_weights(path: str) -> bool:
    """Whether a file is a model or a part of one, and not a thing that lies beside one."""
    name = PurePosixPath(path).name
    return (is_gguf(name) and not is_projector(name) and not _is_importance_matrix(name)
            and not _DRAFT.search(name))


def _is_importance_matrix(name: str) -> bool:
    """Models made with a matrix may have the word in their names, before the quantisation."""
    before, word, after = name.lower().rpartition("imatrix")
    return bool(word) and not (before and _LABEL.search(after.removesuffix(".gguf")))


def label_of(path: str) -> str:
    """The quantisation that a path names, such as Q4_K_M or UD-Q4_K_XL; "" for none."""
    for name in (stem_of(path), PurePosixPath(path).parent.name):
        found = [match["label"] for match in _LABEL.finditer(name)]
        if found:
            return usual(found[-1])
    return ""


def usual(label: str) -> str:
    """A quantisation as files are called that have it: ``F16`` for ``fp16``."""
    return _SAME.get(label.upper(), label.upper())
