"""Prometheus metrics made of values by their labels."""

from collections.abc import Iterable

from prometheus_client.core import (
    CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric,
)

from app.telemetry.histogram import Buckets

Labels = tuple[str, ...]
Values = Iterable[tuple[Labels, float]]


def gauge(name: str, said: str, labels: Labels, values: Values) -> Metric:
    """What goes up and down."""
    family = GaugeMetricFamily(name, said, labels=labels)
    for label, value in values:
        family.add_metric(label, value)
    return family


def counter(name: str, said: str, labels: Labels, values: Values) -> Metric:
    """What only goes up; its name on the page ends with ``_total``."""
    family = CounterMetricFamily(name, said, labels=labels)
    for label, value in values:
        family.add_metric(label, value)
    return family


def histogram(
    name: str, said: str, labels: Labels, values: Iterable[tuple[Labels, Buckets, float]]
) -> Metric:
    """How large numbers are: buckets and sum for each label."""
    family = HistogramMetricFamily(name, said, labels=labels)
    for label, buckets, total in values:
        family.add_metric(label, buckets, total)
    return family
