"""What is counted about requests, as Prometheus metrics; docs/operations.md says what each is."""

from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.record import Closer, Record

OTHER = "other"  # stands for what only clients name, so that the number of labels is bounded
_WAIT = (.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)  # s
_FIRST_BYTE = (.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)
_WHOLE = (.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
_CALL, _MODEL = ("route", "model"), ("model",)

Child = TypeVar("Child", Counter, Histogram)


class _Children(dict[tuple[str, ...], Child], Generic[Child]):
    """The children of a metric by their labels; to find them anew takes longer than to count."""

    def __init__(self, metric: Child) -> None:
        super().__init__()
        self._metric: Child = metric

    def __missing__(self, labels: tuple[str, ...]) -> Child:
        child = self[labels] = self._metric.labels(*labels)
        return child


class RequestMetrics:
    """Counts requests in the metrics of ``registry``. Safe to use from many threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, said: str, labels: tuple[str, ...]) -> _Children[Counter]:
            return _Children(Counter(name, said, labels, registry=registry))

        def histogram(
            name: str, said: str, labels: tuple[str, ...], buckets: tuple[float, ...]
        ) -> _Children[Histogram]:
            return _Children(Histogram(name, said, labels, buckets=buckets, registry=registry))

        self._in_flight = Gauge(
            "loop_calls_in_flight", "Requests that are being answered", registry=registry)
        self._calls = counter(
            "loop_calls", "Requests that were answered, or whose client left (499)",
            (*_CALL, "status"))
        self._disconnects = counter(
            "loop_client_disconnects", "Requests whose client left before the answer was whole",
            _CALL)
        self._stream_errors = counter(
            "loop_stream_errors", "Answers that broke off after they had begun", _CALL)
        self._tokens = counter(
            "loop_tokens", "Tokens, as engines tell them with their answers", ("model", "kind"))
        self._first_byte = histogram(
            "loop_first_byte_seconds", "From a request to the first byte of an engine's answer",
            _CALL, _FIRST_BYTE)
        self._whole = histogram(
            "loop_call_seconds", "From a request to the end of an engine's answer", _CALL, _WHOLE)
        self._queue = histogram(
            "loop_queue_wait_seconds", "What calls waited for a slot of an engine", _MODEL, _WAIT)
        self._load = histogram(
            "loop_load_wait_seconds", "What calls waited for an engine to load, if they did",
            _MODEL, _WAIT)

    def begin(self) -> None:
        """One more request is being answered."""
        self._in_flight.inc()

    def end(self, record: Record) -> None:
        """It is over, and this is what is known of it."""
        self._in_flight.dec()
        label = record.route or OTHER, _model(record)
        self._calls[label + (str(record.status),)].inc()
        if record.closed_by is Closer.CLIENT:
            self._disconnects[label].inc()
        elif record.closed_by is Closer.ENGINE:
            self._stream_errors[label].inc()
        if record.engine is not None:
            self._of_an_engine(record, label)

    def _of_an_engine(self, record: Record, label: tuple[str, str]) -> None:
        model = label[1:]
        self._queue[model].observe(record.queue)
        if record.load:
            self._load[model].observe(record.load)
        if record.status < 400:
            self._whole[label].observe(record.total)
            self._first_byte[label].observe(record.first_byte or record.total)
        if record.prompt_tokens is not None:
            self._tokens[model + ("prompt",)].inc(record.prompt_tokens)
        if record.completion_tokens is not None:
            self._tokens[model + ("completion",)].inc(record.completion_tokens)


def _model(record: Record) -> str:
    if record.model is None:
        return ""
    return record.model if record.known else OTHER
