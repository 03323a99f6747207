"""Waits for a process that has just been started to become an engine."""

import time
from collections.abc import Callable

from app.engines.listening import Listener
from app.engines.making import CannotStart, Process
from app.errors import GatewayError

_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.2  # s between two looks
_NO_SUCH_URL = (404, 405, 501)

Ask = Callable[[str], tuple[int, bytes]]


class Stranger(CannotStart):
    """Another program listens on the port; the engine may come up on another one."""


def wait_until_ready(process: Process, port: int, ask: Ask, limit: float) -> None:
    """Return once the process, or one that it started, listens on the port and says it is ready.

    Blocks for ``limit`` seconds at most. Raises CannotStart; the process may still run then.
    Nothing is sent to the port before the listener is known to be ours.
    """
    until, pause = time.monotonic() + limit, _FIRST_LOOK
    while True:
        how = process.ended()  # before the look: whoever took the port of one that ended is seen
        listener = process.listener(port)
        if listener is Listener.STRANGER:
            raise Stranger(f"another program listens on port {port}")
        if how:
            raise CannotStart(f"it {how}{_last_line(process)}")
        if listener is Listener.OURS and _is_ready(ask):
            return
        if time.monotonic() > until:
            raise CannotStart(_too_slow(process, port, listener, limit))
        process.wait(pause)
        pause = min(1.2 * pause, _LONGEST_LOOK)


def _is_ready(ask: Ask) -> bool:
    try:
        status, _ = ask("/health")
        if status in _NO_SUCH_URL:
            status, _ = ask("/v1/models")
    except GatewayError:
        return False
    return status == 200


def _too_slow(process: Process, port: int, listener: Listener, limit: float) -> str:
    text = f"it was not ready within {limit:g} s"
    others = sorted(process.ports() - {port})
    if listener is Listener.NOBODY and others:
        ports = ", ".join(map(str, others))
        text += f": it listens on port {ports} instead of {port}"
    return text + _last_line(process)


def _last_line(process: Process) -> str:
    line = process.last_line()
    return f"; its last line: {line}" if line else ""
