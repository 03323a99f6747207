"""What gunicorn may be told and what not."""

import sys
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from app.settings import ServerSettings

# Threads beside those that may wait for engines: health and lists answer when all of these do.
RESERVE = 16
ONE_WORKER = (
    "the gateway runs in one worker process: what is loaded, queued and counted lives in its "
    "memory, and a second worker would know nothing of it; use server.threads for more calls at "
    "a time"
)


def bind(settings: ServerSettings) -> str:
    """The address to listen on, in gunicorn's form."""
    address = settings.address.strip("[]")
    return f"[{address}]:{settings.port}" if ":" in address else f"{address}:{settings.port}"


def refuse_unsupported(cfg: Any) -> None:
    """End the process with a sentence where gunicorn's settings do not fit the gateway."""
    if cfg.workers > 1:
        sys.exit(ONE_WORKER)
    if cfg.preload_app:
        sys.exit("the gateway is built in its worker, after the fork: leave out --preload")
    if not issubclass(cfg.worker_class, ThreadWorker):
        sys.exit("the gateway needs its own worker class: leave out --worker-class")
