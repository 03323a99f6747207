"""Which files of a repository make the model that was asked for. Pure: facts in, decision out.

1. Only GGUF files; projectors, drafts and importance matrices are no models.
2. A tag is a quantisation, or the name of a file.
3. Without one: the first of ``ORDER`` that there is.
4. Of several models of that quantisation the one in the highest folder, if that leaves one.
5. All parts of a split; and the projector nearest to it, F16 before BF16 before others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from app.catalog.file_names import (
    holds_weights, is_projector, label_of, split_of, stem_of, usual,
)
from app.catalog.manifest import FileEntry
from app.catalog.problems import BadFile, NotFound, shown

# Q4_K_M as Ollama and llama.cpp; then other four-bit ones, then what is larger, then smaller.
ORDER = tuple(
    "Q4_K_M Q4_K_XL Q4_K_L Q4_K_S IQ4_NL IQ4_XS Q4_0 Q4_1 Q4 MXFP4_MOE MXFP4 NVFP4 "
    "Q5_K_M Q5_K_XL Q5_K_L Q5_K_S Q5_0 Q5_1 Q6_K Q6_K_XL Q6_K_L Q8_0 Q8_K_XL "
    "Q3_K_M Q3_K_XL Q3_K_L Q3_K_S IQ3_M IQ3_S IQ3_XS IQ3_XXS F16 BF16 F32 "
    "Q2_K_XL Q2_K_L Q2_K Q2_K_S IQ2_M IQ2_S IQ2_XS IQ2_XXS TQ2_0 IQ1_M IQ1_S TQ1_0".split())
_NO_TAG = "latest"  # of the only model, of a quantisation that its name does not tell
_PROJECTORS = ("F16", "BF16", "F32", "Q8_0")


@dataclass(frozen=True)
class Selection:
    """The files of one model, part 1 first, the projector last; ``tag`` is for its name."""

    tag: str
    quant: str
    files: tuple[FileEntry, ...]


@dataclass(frozen=True)
class _Model:
    """One model of the repository: the path of its first part stands for it."""

    first: str
    label: str

    @property
    def depth(self) -> int:
        return self.first.count("/")


def select(repo: str, files: Sequence[FileEntry], tag: str) -> Selection:
    """The model; raises NotFound with what there is, BadFile for one that lacks a part."""
    models = _models(files)
    if not models:
        raise NotFound(f"{repo} has no GGUF files: look for a repository of this model that has")
    named = [model for model in models if tag and _is_called(model, tag)]
    fitting = named or (_of_label(models, tag) if tag else _preferred(models))
    if not fitting:
        raise NotFound(f"{repo} has no '{shown(tag)}': it has {_labels(models)}")
    highest = min(model.depth for model in fitting)
    chosen = [model for model in fitting if model.depth == highest]
    if len(chosen) > 1:
        raise NotFound(f"{repo} has several models that fit: choose one of its files, "
                       + " or ".join(f"{repo}:{stem_of(model.first)}" for model in chosen[:6]))
    model = chosen[0]
    found = _parts(repo, files, model.first)
    projector = _projector(files, model.first)
    return Selection(
        tag=stem_of(model.first) if named else model.label or _NO_TAG,
        quant=model.label,
        files=tuple(found + ([projector] if projector else [])))


def _models(files: Sequence[FileEntry]) -> list[_Model]:
    firsts: dict[str, None] = {}
    for file in files:
        if holds_weights(file.path):
            split = split_of(file.path)
            firsts[split.all()[0] if split else file.path] = None
    return [_Model(first, label_of(first)) for first in firsts]


def _is_called(model: _Model, tag: str) -> bool:
    path = model.first.lower()
    split = split_of(model.first)
    names = {path, PurePosixPath(path).name, stem_of(path)}
    if split:
        names.update(name.lower() for name in split.all())
    return tag.lower() in names


def _of_label(models: Sequence[_Model], tag: str) -> list[_Model]:
    """Those of exactly this quantisation, else those of one that ends so: UD-Q4_K_XL."""
    wanted = usual(tag)
    exact = [model for model in models if model.label == wanted]
    return exact or [model for model in models if model.label.endswith(f"-{wanted}")]


def _preferred(models: Sequence[_Model]) -> list[_Model]:
    best = min(_rank(model.label) for model in models)
    return [model for model in models if _rank(model.label) == best]


def _rank(label: str) -> tuple[int, bool]:
    plain = label.removeprefix("UD-")
    return ORDER.index(plain) if plain in ORDER else len(ORDER), label != plain


def _labels(models: Sequence[_Model]) -> str:
    found = sorted({model.label or stem_of(model.first) for model in models}, key=_rank)
    return ", ".join(found)


def _parts(repo: str, files: Sequence[FileEntry], first: str) -> list[FileEntry]:
    split = split_of(first)
    by_path = {file.path: file for file in files}
    wanted = split.all() if split else [first]
    missing = [path for path in wanted if path not in by_path]
    if missing:
        raise BadFile(f"{repo} has only a part of this model: {shown(missing[0])} is missing")
    return [by_path[path] for path in wanted]


def _projector(files: Sequence[FileEntry], first: str) -> FileEntry | None:
    """The projector in the model's folder, or in the nearest one above."""
    above = [folder.as_posix() for folder in PurePosixPath(first).parents]

    def distance(file: FileEntry) -> tuple[int, int, str]:
        label = label_of(file.path)
        return (above.index(PurePosixPath(file.path).parent.as_posix()),
                _PROJECTORS.index(label) if label in _PROJECTORS else len(_PROJECTORS), file.path)

    near = [file for file in files
            if is_projector(file.path) and PurePosixPath(file.path).parent.as_posix() in above]
    return min(near, key=distance, default=None)
