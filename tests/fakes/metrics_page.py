"""A page of metrics, read by prometheus_client's own reader."""

from __future__ import annotations

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

Values = Counter[tuple[str, ...]]


class MetricsPage:
    """The samples of one page; raises AssertionError where a metric is told of in two places."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = [sample for family in text_string_to_metric_families(text)
                        for sample in family.samples]
        self.types = dict(line.split(" ")[2:4] for line in text.splitlines()
                          if line.startswith("# TYPE "))
        for keyword in ("# TYPE ", "# HELP "):
            names = [line.split(" ")[2] for line in text.splitlines() if line.startswith(keyword)]
            assert len(names) == len(set(names)), names
        series = [(sample.name, *sorted(sample.labels.items())) for sample in self.samples]
        assert len(series) == len(set(series))

    def by(self, name: str, *labels: str) -> Values:
        """The values of these samples, added up by these labels; those that are zero left out."""
        found: Values = Counter()
        for sample in self.samples:
            if sample.name == name and sample.value:
                found[tuple(sample.labels[label] for label in labels)] += int(sample.value)
        return found

    def value(self, name: str, **labels: str) -> float:
        """The one sample with this name and these labels among its own."""
        [found] = [sample.value for sample in self.samples if sample.name == name
                   and labels.items() <= sample.labels.items()]
        return float(found)
