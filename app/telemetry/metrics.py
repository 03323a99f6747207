"""What is counted about requests, as Prometheus metrics; docs/operations.md says what each is.

Counted in plain numbers and made into metrics when somebody asks: prometheus_client's own counters
take a lock for each of them, and three times as long.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.record import Closer, Record
from app.telemetry.families import Labels, counter, gauge, histogram
from app.telemetry.histogram import Buckets, Histogram

OTHER = "other"  # stands for what only clients name, so that the number of labels is bounded
_WAIT = (.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)  # s
_FIRST_BYTE = (.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)
_WHOLE = (.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
_CALL, _MODEL = ("route", "model"), ("model",)

Counts = defaultdict[Labels, int]
Histograms = defaultdict[Labels, Histogram]


class RequestMetrics(Collector):
    """Counts requests. Safe to use from many threads; one lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight = 0
        self._calls: Counts = defaultdict(int)
        self._disconnects: Counts = defaultdict(int)
        self._stream_errors: Counts = defaultdict(int)
        self._tokens: Counts = defaultdict(int)
        self._first_byte: Histograms = defaultdict(partial(Histogram, _FIRST_BYTE))
        self._whole: Histograms = defaultdict(partial(Histogram, _WHOLE))
        self._queue: Histograms = defaultdict(partial(Histogram, _WAIT))
        self._load: Histograms = defaultdict(partial(Histogram, _WAIT))

    def begin(self) -> None:
        """One more request is being answered."""
        with self._lock:
            self._in_flight += 1

    def end(self, record: Record) -> None:
        """It is over, and this is what is known of it."""
        model = record.model
        model = "" if model is None else model if record.known else OTHER
        label: Labels = (record.route or OTHER, model)
        with self._lock:
            self._in_flight -= 1
            self._calls[label + (str(record.status),)] += 1
            if record.closed_by is Closer.CLIENT:
                self._disconnects[label] += 1
            elif record.closed_by is Closer.ENGINE:
                self._stream_errors[label] += 1
            if record.engine is not None:
                self._of_an_engine(record, label)

    def _of_an_engine(self, record: Record, label: Labels) -> None:
        model = label[1]
        self._queue[model,].note(record.queue)
        if record.load:
            self._load[model,].note(record.load)
        if record.status < 400:
            self._whole[label].note(record.total)
            self._first_byte[label].note(record.first_byte or record.total)
        if record.prompt_tokens is not None:
            self._tokens[model, "prompt"] += record.prompt_tokens
        if record.completion_tokens is not None:
            self._tokens[model, "completion"] += record.completion_tokens

    def collect(self) -> Iterable[Metric]:
        """The metrics of this moment."""
        yield gauge("loop_calls_in_flight", "Requests that are being answered", (),
                    [((), self._in_flight)])
        yield counter(
            "loop_calls", "Requests that were answered, or whose client left (499)",
            (*_CALL, "status"), self._copied(self._calls))
        yield counter(
            "loop_client_disconnects", "Requests whose client left before the answer was whole",
            _CALL, self._copied(self._disconnects))
        yield counter(
            "loop_stream_errors", "Answers that broke off after they had begun",
            _CALL, self._copied(self._stream_errors))
        yield counter(
            "loop_tokens", "Tokens, as engines tell them with their answers",
            ("model", "kind"), self._copied(self._tokens))
        yield histogram(
            "loop_first_byte_seconds", "From a request to the first byte of an engine's answer",
            _CALL, self._told(self._first_byte))
        yield histogram(
            "loop_call_seconds", "From a request to the end of an engine's answer",
            _CALL, self._told(self._whole))
        yield histogram(
            "loop_queue_wait_seconds", "What calls waited for a slot of an engine",
            _MODEL, self._told(self._queue))
        yield histogram(
            "loop_load_wait_seconds", "What calls waited for an engine to load, if they did",
            _MODEL, self._told(self._load))

    def _copied(self, counts: Counts) -> list[tuple[Labels, int]]:
        with self._lock:
            return list(counts.items())

    def _told(self, found: Histograms) -> list[tuple[Labels, Buckets, float]]:
        with self._lock:
            return [(label, each.buckets(), each.sum) for label, each in found.items()]
