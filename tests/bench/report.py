"""The measures as tables: medians, the smallest and the largest of the rounds, and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.plan import BUSY, FEW, FEW_PACE, MANY_PACE, MODELS, PICTURE
from tests.bench.rounds import Results

_BASE, _LABEL, _CELL = "direct", 53, 23
_PLAIN_STREAM = "few cpu"  # which peers have, that have no /api/chat
Rounds = list[dict[str, float]]


@dataclass(frozen=True)
class Row:
    """One measure: its label, what to multiply it by, its decimals; `added` to that of direct."""

    key: str
    label: str
    scale: float
    digits: int
    added: bool = False
    of_direct: str = ""  # the key of what it is added to, if another


_FAULTS = "… events lost or out of order, ends missing"
_RATIOS = [
    ("alone cpu", "CPU per plain request, one at a time"),
    ("busy cpu", f"CPU per plain request, {BUSY} at a time"),
    ("few cpu", f"CPU per event, {FEW} streams"),
    ("ollama cpu", f"CPU per event of /api/chat, {FEW} streams"),
    ("many cpu", "CPU per event, many streams"),
]


def _rows(streams: int) -> list[Row]:
    return [
        Row("alone cpu", "CPU µs per plain request, one at a time", 1e6, 0),
        Row("busy cpu", f"CPU µs per plain request, {BUSY} at a time", 1e6, 0),
        Row("busy rate", f"plain requests/s, {BUSY} at a time", 1, 0),
        Row("alone p50", "added ms per plain request, one at a time, p50", 1e3, 2, added=True),
        Row("alone p99", "… p99", 1e3, 2, added=True),
        *_stream_rows("few", FEW, FEW_PACE),
        *_stream_rows("ollama", FEW, FEW_PACE, " of /api/chat"),
        *_stream_rows("many", streams, MANY_PACE),
        Row("memory idle", "memory in MB, idle", 1e-6, 0),
        Row("few memory", f"… with {FEW} streams", 1e-6, 0),
        Row("many memory", f"… with {streams} streams", 1e-6, 0),
        Row("picture memory", "… by how much a picture makes it larger", 1e-6, 0),
        Row("picture of_body", "… as a multiple of the request's body", 1, 1),
        Row("picture cpu", f"CPU ms per request with {PICTURE / 1e6:.0f} MB of picture", 1e3, 0),
        Row("picture of_reading", "… as a multiple of one json.loads of it", 1, 1),
        Row("tags", f"CPU ms per /api/tags, {MODELS} models known", 1e3, 1),
        Row("show", "CPU ms per /api/show, known", 1e3, 2),
        Row("cold_show", "… of a model with 262144 words, unknown", 1e3, 0),
        Row("start", "seconds from start to the first answer", 1, 2),
    ]


def _stream_rows(key: str, count: int, pace: int, of: str = "") -> list[Row]:
    below = "few" if key == "ollama" else key
    return [
        Row(f"{key} cpu", f"CPU µs per event{of}, {count} streams, {pace} ms", 1e6, 1),
        Row(f"{key} p50", "… added lag of an event in ms, p50", 1e3, 2, True, f"{below} p50"),
        Row(f"{key} p99", "… p99", 1e3, 2, True, f"{below} p99"),
        Row(f"{key} faults", _FAULTS, 1, 0),
    ]


_REFERENCES = ("nginx", "hello", "floor", "portkey", "litellm")
_NOTES = """\
Each figure is the median of the rounds (smallest–largest). CPU is user and system time of all of a
subject's processes, memory their resident pages; those of direct are the engine's own. Added: that
quantile less direct's of the same round; direct shows it whole. hello has no engine behind it;
floor only forwards, with the gateway's libraries. Load and engine run on the same machine."""


def tables(results: Results, streams: int) -> str:
    """Both tables and what to know of them."""
    measures = results.measures
    blocks = [
        _table("", measures, [
            (row.label, [_cell(row, measures, name) for name in measures])
            for row in _rows(streams)
        ]),
        _table("ratios", measures, list(_ratio_lines(measures))),
        _NOTES,
    ]
    return "\n\n".join(blocks)


def _table(title: str, names: dict[str, Rounds], lines: Sequence[tuple[str, list[str]]]) -> str:
    head = (title, list(names))
    return "\n".join(
        label.ljust(_LABEL) + "".join(cell.rjust(_CELL) for cell in cells)
        for label, cells in (head, *lines))


def _cell(row: Row, measures: dict[str, Rounds], name: str) -> str:
    base = measures[_BASE] if row.added and name != _BASE else None
    return _spread(_values(row, measures[name], base), row.digits)


def _values(row: Row, rounds: Rounds, base: Rounds | None = None) -> list[float]:
    pairs = zip(rounds, base or rounds)
    key = row.of_direct or row.key if base else row.key
    return [
        (each[row.key] - (below[key] if base else 0)) * row.scale
        for each, below in pairs if row.key in each and key in below
    ]


def _ratio_lines(measures: dict[str, Rounds]) -> Iterator[tuple[str, list[str]]]:
    for reference in _REFERENCES:
        for key, label in _RATIOS:
            below = _PLAIN_STREAM if key == "ollama cpu" else key
            if any(below in each for each in measures.get(reference, [])):
                cells = [_spread(_ratios(key, rounds, below, measures[reference]), 2)
                         for rounds in measures.values()]
                yield f"{label} / {reference}", cells


def _ratios(key: str, rounds: Rounds, below: str, reference: Rounds) -> list[float]:
    return [
        each[key] / other[below] for each, other in zip(rounds, reference)
        if key in each and below in other
    ]


def _spread(values: list[float], digits: int) -> str:
    if not values:
        return "-"
    low, middle, high = (
        f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low}–{high})"
