"""What a request is refused with, in the words that clients know from Ollama."""

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


def quoted(text: str) -> str:
    """``text`` in double quotes as Go prints it, cut where it is long."""
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
