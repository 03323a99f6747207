"""Where the gateway's own log lines go: standard error, one line each."""

import logging
import sys
from typing import TextIO


class _Lines(logging.Formatter):
    """One line per record (a stack trace apart), whatever a name or path in it holds."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = "".join(c if c.isprintable() else repr(c)[1:-1] for c in record.message)
        return super().formatMessage(record)


def configure(stream: TextIO = sys.stderr) -> None:
    """Send what the packages below ``app`` log to ``stream``; a second call changes nothing."""
    logger = logging.getLogger("app")
    if not logger.handlers:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
