"""How many requests may wait at a time, and that none may once the gateway is to end."""

import threading

from app.errors import GatewayError, Kind

_BACK = 5  # s; until a gateway that is started again may answer
_MOMENT = 0.1  # s; a client has its answer a moment before the place of its call is free
_WAITING = 8  # threads at most, of those beside the ones for calls, wait so long


class Places:
    """The right to keep a thread waiting, for an engine or for a slow client's body."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)
        self._waiting = threading.BoundedSemaphore(_WAITING)
        self.closed = False

    def close(self) -> None:
        """Give no more places."""
        self.closed = True

    def try_take(self) -> bool:
        """Take a place, if one is free; never blocks."""
        return not self.closed and self._free.acquire(blocking=False)

    def take(self) -> None:
        """Take a place; raises GatewayError where none is free, nor is a moment later."""
        if self.try_take() or self._take_soon():
            return
        if self.closed:
            raise stopping()
        raise GatewayError(Kind.BUSY, "the gateway is answering as many calls as it can")

    def _take_soon(self) -> bool:
        if self.closed or not self._waiting.acquire(blocking=False):
            return False
        try:
            return self._free.acquire(timeout=_MOMENT)
        finally:
            self._waiting.release()

    def give_back(self) -> None:
        """Give a place back that was taken."""
        self._free.release()


def stopping() -> GatewayError:
    """The error for a call that a gateway which is to end does not take, or not to its end."""
    return GatewayError(Kind.STOPPING, "the gateway is stopping", wait=_BACK)
