"""Whoever wants to know of requests hears of them here."""

from app.record import Record
from app.telemetry.access_log import AccessLog
from app.telemetry.metrics import RequestMetrics


class Observer:
    """Hears of the beginning and the end of each request. Safe to use from many threads."""

    def __init__(self, metrics: RequestMetrics, access_log: AccessLog | None) -> None:
        self._metrics = metrics
        self._access_log = access_log

    def begin(self) -> None:
        """One more request is being answered."""
        self._metrics.begin()

    def end(self, record: Record) -> None:
        """It is over, and nothing is added to its record any more. Raises nothing."""
        record.end()
        self._metrics.end(record)
        if self._access_log:
            self._access_log.note(record)
