"""Notices a model that has begun to say the same thing for ever."""

_MOST = 30  # as in github.com/ollama/ollama, llm/server.go


class Repeats:
    """Counts how often one token follows itself, white space around it aside."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._times = 0

    def exceeded_by(self, token: str) -> bool:
        """Whether this token repeats the one before it for more than the 30th time in a row."""
        bare = token.strip()
        self._times = self._times + 1 if bare == self._last else 0
        self._last = bare
        return self._times > _MOST
