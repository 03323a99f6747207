"""How many requests may wait at a time, and that none may once the gateway is to end."""

import threading

from app.errors import GatewayError, Kind

_BACK = 5  # s; until a gateway that is started again may answer


class Places:
    """The right to keep a thread waiting, for an engine or for a slow client's body."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)
        self.closed = False

    def close(self) -> None:
        """Give no more places."""
        self.closed = True

    def try_take(self) -> bool:
        """Take a place, if one is free; never blocks."""
        return not self.closed and self._free.acquire(blocking=False)

    def take(self) -> None:
        """Take a place; never blocks, raises GatewayError where none is free."""
        if self.closed:
            raise stopping()
        if not self.try_take():
            raise GatewayError(Kind.BUSY, "the gateway is answering as many calls as it can")

    def give_back(self) -> None:
        """Give a place back that was taken."""
        self._free.release()


def stopping() -> GatewayError:
    """The error for a call that a gateway which is to end does not take, or not to its end."""
    return GatewayError(Kind.STOPPING, "the gateway is stopping", wait=_BACK)
