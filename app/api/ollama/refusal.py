"""What a request is refused with, in the words that clients know from Ollama."""

from app.catalog.problems import (
    BadFile, BadName, CatalogError, HubRefused, HubUnavailable, NameTaken, NoSpace, NotFound,
    WrongContent,
)

# The hub's word is about the gateway's token: a client would ask its user for another key.
_STATUS: dict[type[CatalogError], int] = {
    BadFile: 400, BadName: 400, WrongContent: 400, NotFound: 404, NameTaken: 409, HubRefused: 502,
    HubUnavailable: 502, NoSpace: 507,
}
_LONGEST = 200  # characters of the client's own text that an error repeats


class Refusal(Exception):
    """A request that cannot be answered; the client gets ``status`` and ``{"error": text}``."""

    def __init__(self, status: int, text: str, retry_after: str = "") -> None:
        """``retry_after``: what the engine said of when to come back."""
        super().__init__(text)
        self.status = status
        self.text = text
        self.retry_after = retry_after


def invalid(text: str) -> Refusal:
    """The refusal of a request that is itself wrong."""
    return Refusal(400, text)


def of_catalog(error: CatalogError) -> Refusal:
    """The refusal for what the registry or the hub does not let be done."""
    wait = error.wait if isinstance(error, HubUnavailable) else None
    if wait:
        return Refusal(503, str(error), f"{wait:.0f}")
    return Refusal(_STATUS.get(type(error), 500), str(error))


def quoted(text: str) -> str:
    """``text`` in double quotes as Go prints it, cut where it is long."""
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
