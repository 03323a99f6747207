"""What signals mean to gunicorn's master, which starts the one worker and passes them on.

    SIGHUP            the worker reads its configuration again. gunicorn's own meaning, a new
                      worker, would end all engines and cut calls off
    SIGTERM           the worker ends once its calls have; a second one means SIGINT
    SIGINT, SIGQUIT   the worker ends at once
    SIGUSR2           refused: a second worker
"""

import math
import signal
from functools import partial
from typing import Any

from app.server.checks import ONE_WORKER
from app.settings import Settings

_MARGIN = 8.0  # s; for the ends of connections and of engines that ignore SIGTERM


def take_signals(arbiter: Any) -> None:
    """Let the signals of the master mean this; before it has set up its handlers."""
    arbiter.handle_hup = partial(arbiter.kill_workers, signal.SIGHUP)
    arbiter.handle_usr2 = partial(arbiter.log.error, ONE_WORKER)
    arbiter.signal = _Signals(arbiter.SIG_QUEUE.put_nowait)


class _Signals:
    """The handler of all signals but SIGCHLD."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._ending = False

    def __call__(self, signum: int, frame: Any) -> None:
        again = signum == signal.SIGTERM and self._ending
        self._ending = self._ending or signum == signal.SIGTERM
        self._queue(signal.SIGINT if again else signum)


def longest_end(settings: Settings) -> int:
    """Seconds after which a worker that has not ended by itself is killed."""
    engines = (engine.stop_timeout for engine in settings.loop.engines if engine.command)
    return math.ceil(settings.server.stop_timeout + max(engines, default=0.0) + _MARGIN)
