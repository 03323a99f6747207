"""The page of all metrics: the gateway's own, and behind them what engines say of themselves.

Format: prometheus.io/docs/instrumenting/exposition_formats, text-based format 0.0.4.
"""

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from app.model_status import EngineText
from app.telemetry.metrics import OTHER

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_OWN = ("loop_", "process_")  # what the names of the gateway's own metrics begin with
_COUNTER = re.compile(r"^# TYPE (\S+) counter\b", re.MULTILINE)
_TOTAL = "_total"
_NOBODYS = ("", OTHER)  # models of lines that speak of none by name
_LARGEST = 256 * 1024  # characters of what one engine says


class MetricsPage:
    """Makes the page. Safe to use from many threads."""

    def __init__(self, own: Collector, engines: Callable[[], Sequence[EngineText]]) -> None:
        self._own = own
        self._engines = engines

    def made(self, shows: Callable[[str], bool] | None = None) -> bytes:
        """The page of this moment; blocks for as long as ``engines`` does.

        With ``shows`` there are no lines about models for which it is false.
        """
        texts = self._engines()
        if shows is None:
            return generate_latest(self._own) + merged(texts).encode()
        theirs = merged(text for text in texts if shows(text.model))
        return generate_latest(_OfSome(self._own, shows)) + theirs.encode()


class _OfSome(Collector):
    """The metrics of another collector without the lines about models that are not shown."""

    def __init__(self, every: Collector, shows: Callable[[str], bool]) -> None:
        self._every = every
        self._shows = shows

    def collect(self) -> Iterable[Metric]:
        """The metrics of this moment."""
        for metric in self._every.collect():
            found = copy.copy(metric)
            found.samples = [sample for sample in metric.samples if self._is_shown(sample)]
            yield found

    def _is_shown(self, sample: Sample) -> bool:
        model = sample.labels.get("model", "")
        return model in _NOBODYS or self._shows(model)


@dataclass
class _Family:
    """One metric of engines: its kind, what is said of it, and its lines."""

    kind: str
    said: str
    lines: list[str] = field(default_factory=list)


def merged(texts: Iterable[EngineText]) -> str:
    """The engines' metrics with labels ``engine`` and ``model``; each metric's lines together.

    An engine whose text cannot be read is left out, and so is a metric with a name such as the
    gateway's own have, or of another kind than with an engine before.
    """
    families: dict[str, _Family] = {}
    for text in texts:
        for name, found in _read(text).items():
            family = families.setdefault(name, _Family(found.kind, found.said))
            if family.kind == found.kind:
                family.lines += found.lines
    return "".join(
        f"# HELP {name} {_escaped(family.said)}\n# TYPE {name} {family.kind}\n"
        + "".join(family.lines)
        for name, family in families.items()
    )


def _read(text: EngineText) -> dict[str, _Family]:
    """The metrics of one engine by name; none where its text is not in the format.

    Prometheus takes nothing of a page on which one value is told twice.
    """
    if len(text.text) > _LARGEST:
        return {}
    try:
        metrics = list(text_string_to_metric_families(text.text))
    except (ValueError, IndexError):  # the reader's own words for what it does not expect
        return {}
    counters = set(_COUNTER.findall(text.text))
    labels = {"engine": text.engine, "model": text.model}
    found: dict[str, _Family] = {}
    for metric in metrics:
        name = _name(metric, counters)
        if metric.samples and not name.startswith(_OWN):
            family = found.setdefault(name, _Family(_kind(metric), metric.documentation))
            family.lines += (_line(_sample_name(metric, s, name), s, labels)
                             for s in metric.samples)
    told = [line.rpartition(" ")[0] for family in found.values() for line in family.lines]
    return found if len(told) == len(set(told)) else {}


def _kind(metric: Metric) -> str:
    return "untyped" if metric.type == "unknown" else metric.type


def _name(metric: Metric, counters: set[str]) -> str:
    """The metric's name as the engine has it: the reader takes ``_total`` off that of a counter."""
    total = metric.name + _TOTAL
    return total if metric.type == "counter" and total in counters else metric.name


def _sample_name(metric: Metric, sample: Sample, name: str) -> str:
    """The line's name as the engine has it: the reader adds ``_total`` to that of any counter."""
    return name if metric.type == "counter" else sample.name


def _line(name: str, sample: Sample, labels: dict[str, str]) -> str:
    """One line; a label of the engine's that has our name is told as Prometheus itself does."""
    theirs = {f"exported_{key}" if key in labels else key: value
              for key, value in sample.labels.items()}
    pairs = ",".join(f'{key}="{_escaped(value, quotes=True)}"'
                     for key, value in (labels | theirs).items())
    return f"{name}{{{pairs}}} {_number(sample.value)}\n"


def _number(value: float) -> str:
    """As Go reads it: Python's inf and nan are Inf and NaN there."""
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(str(value), str(value))


def _escaped(text: str, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
