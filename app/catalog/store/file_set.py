"""The files that make one model: all parts of a split, and a projector after them."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from app.catalog.file_names import holds_weights, is_projector, split_of
from app.catalog.manifest import FileEntry, stays_below
from app.catalog.problems import BadFile, shown
from app.catalog.store.references import MANIFEST

_LONGEST = 240  # bytes of a file's name; file systems allow 255, and we put a dot before it


def ordered(files: Sequence[FileEntry]) -> list[FileEntry]:
    """The files with part 1 first and projectors last; raises BadFile for what is no one model."""
    weights = [file for file in files if holds_weights(file.path)]
    projectors = [file for file in files if is_projector(file.path)]
    others = [file.path for file in files if file not in weights and file not in projectors]
    if others:
        raise BadFile(f"'{shown(others[0])}' is neither a model nor a projector")
    if not weights:
        raise BadFile("there is no model among the files")
    split = split_of(weights[0].path)
    wanted = split.all() if split else [weights[0].path]
    by_path = {file.path: file for file in weights}
    missing = [path for path in wanted if path not in by_path]
    if missing:
        raise BadFile(f"the model is not whole: '{shown(missing[0])}' is missing")
    if len(weights) > len(wanted):
        raise BadFile("there is more than one model among the files: "
                      + " and ".join(shown(file.path) for file in weights[:2]))
    return [by_path[path] for path in wanted] + sorted(projectors, key=lambda file: file.path)


def require_path(path: str) -> str:
    """The path, if a file in a model's directory can have it; raises BadFile."""
    parts = PurePosixPath(path).parts
    if not path.isprintable() or not stays_below(path) or not parts:
        raise BadFile(f"a file of a model cannot be called '{shown(path)}'")
    if any(part.startswith(".") or len(part.encode()) > _LONGEST for part in parts):
        raise BadFile(f"the name of the file '{shown(path)}' is too long or hidden")
    if parts[0].casefold() == MANIFEST:
        raise BadFile(f"a file of a model cannot be called '{shown(path)}', as the registry keeps "
                      f"what it knows of the model in {MANIFEST}")
    return path
