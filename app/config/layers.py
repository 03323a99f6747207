"""Reads files and the environment into one flat layer: key path → value and where it stands."""

import difflib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from app.config import shown
from app.config.problems import Problem
from app.config.schema import ROOT, Section

KeyPath = tuple[str, ...]
# What PyYAML raises, of values that are not what their tags say (!!int x, !!bool x) too.
UNREADABLE = (
    yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError,
    OverflowError)
_MERGE = "tag:yaml.org,2002:merge"
# Which files to read; what a gateway that runs below another one carries; what only tests look at.
_IGNORED = ("LOOP_CONFIG", "LOOP_ENGINE_", "LOOP_TEST_")


@dataclass
class Layer:
    """Values by key path with their source; later layers are laid on top by ``update``."""

    values: dict[KeyPath, tuple[Any, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def update(self, above: "Layer") -> None:
        """Let the values of ``above`` win, and keep the problems of both."""
        self.values.update(above.values)
        self.problems.extend(above.problems)


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping: the first would silently be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: list[Any] = []
        for name, _ in node.value:
            key = None if name.tag == _MERGE else self.construct_object(name, deep=True)
            if key is not None and key in seen:
                known = shown.name(key)
                text = f"the key {known} is repeated" if known else "a key is repeated"
                raise yaml.constructor.ConstructorError(None, None, text, name.start_mark)
            seen.append(key)
        return super().construct_mapping(node, deep)


def read_file(path: Path) -> Layer:
    """The layer of one YAML file; what cannot be read is a problem of it, never an exception."""
    source = str(path)
    layer = Layer()
    try:
        raw = path.read_bytes()
    except OSError as error:
        layer.problems.append(Problem(source, "", f"cannot be read: {error.strerror}"))
        return layer
    _flatten(layer, ROOT, parse(raw, layer, source), (), source)
    return layer


def parse(raw: bytes, layer: Layer, source: str) -> Any:
    """What a YAML document in UTF-8 holds; None where it is none, which the layer then knows."""
    try:
        return yaml.load(raw.decode("utf-8"), _Loader)  # noqa: S506 (a SafeLoader)
    except UNREADABLE as error:
        layer.problems.append(Problem(source, "", f"is no valid YAML: {shown.reason(error)}"))
    return None


def read_environment(environ: Mapping[str, str]) -> Layer:
    """The layer of all ``LOOP_…`` variables; one that names no key is a problem."""
    layer = Layer()
    known = {"LOOP_" + "_".join(path).replace("-", "_").upper(): path for path in _leaves(ROOT)}
    for name in sorted(environ):
        if name in known:
            layer.values[known[name]] = (_typed(environ[name]), name)
        elif name.startswith("LOOP_") and not name.startswith(_IGNORED):
            rule = "is a variable that names no key" + _suggestion(name, known)
            layer.problems.append(Problem(name, "", rule))
    return layer


def fold(
    section: Section, data: Mapping[Any, Any], path: str, layer: Layer, source: str
) -> dict[str, Any]:
    """``data`` with kebab-case keys; unknown and repeated ones become problems of ``layer``."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = str(key).replace("_", "-")
        where = f"{path}.{key}" if path else str(key)
        if name not in section:
            layer.problems.append(_unknown(key, path, section, source))
        elif name in found:
            layer.problems.append(Problem(source, where, "is given twice; keep one spelling"))
        else:
            found[name] = value
    return found


def _unknown(key: Any, path: str, section: Section, source: str) -> Problem:
    """The problem of a key that there is not; one that is no name may be anything, and secret."""
    name = shown.name(key)
    if name is None:
        rule = (f"has a key {shown.NOTHING} that is none of the configuration; maybe there is no "
                "space behind its colon")
        return Problem(source, path, rule)
    rule = "is no key of the configuration" + _suggestion(name.replace("_", "-"), section)
    return Problem(source, f"{path}.{name}" if path else name, rule)


def _flatten(layer: Layer, section: Section, data: Any, path: KeyPath, source: str) -> None:
    if data is None:  # a section without keys
        return
    if not isinstance(data, dict):
        rule = "must be a mapping of keys to values"
        layer.problems.append(Problem(source, ".".join(path), rule, data))
        return
    for name, value in fold(section, data, ".".join(path), layer, source).items():
        inner = section[name]
        if isinstance(inner, Mapping):
            _flatten(layer, inner, value, path + (name,), source)
        else:
            layer.values[path + (name,)] = (value, source)


def _leaves(section: Section, path: KeyPath = ()) -> list[KeyPath]:
    found: list[KeyPath] = []
    for name, inner in section.items():
        here = path + (name,)
        found += _leaves(inner, here) if isinstance(inner, Mapping) else [here]
    return found


def _typed(text: str) -> Any:
    """A variable's value: a list or mapping where it is written as one, null where empty."""
    if text in ("", "null"):
        return None
    if text[0] not in "[{":
        return text
    try:
        return yaml.load(text, _Loader)  # noqa: S506 (a SafeLoader)
    except UNREADABLE:
        return text  # the reader of the key says what it must be


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
