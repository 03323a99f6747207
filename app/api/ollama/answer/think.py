"""Parts thinking from the answer for engines that leave the tags in the text."""

from enum import Enum, auto

_OPEN = "<think>"
_CLOSE = "</think>"


class _At(Enum):
    START = auto()     # the text may begin with the tag, behind white space
    OPENED = auto()    # behind the tag, in front of the first thought
    THINKING = auto()
    CLOSED = auto()    # behind the closing tag, in front of the first word
    ANSWER = auto()


class ThinkSplitter:
    """Takes the text as it comes; holds back only what may turn out to be part of a tag.

    As in Ollama (thinking/parser.go) one block at the start counts, and the white space behind its
    tags goes. What comes out does not depend on how the text is cut.
    """

    def __init__(self, opened: bool) -> None:
        """``opened``: the opening tag was in the prompt."""
        self._at = _At.OPENED if opened else _At.START
        self._held = ""

    def split(self, text: str) -> tuple[str, str]:
        """The content and the thinking that are certain with this text."""
        if self._at is _At.ANSWER:
            return text, ""
        text, self._held = self._held + text, ""
        thinking = ""
        if self._at is _At.START:
            text = self._started(text)
        if self._at in (_At.OPENED, _At.THINKING):
            text, thinking = self._thought(text)
        if self._at is _At.CLOSED:
            text = text.lstrip()
            self._at = _At.ANSWER if text else _At.CLOSED
        return text, thinking

    def rest(self) -> tuple[str, str]:
        """The content and the thinking that were held back, now that the text has ended."""
        held, self._held = self._held, ""
        return (held, "") if self._at is _At.START else ("", held)

    def _started(self, text: str) -> str:
        """What follows the opening tag, or all of a text that does not begin with it."""
        bare = text.lstrip()
        if bare.startswith(_OPEN):
            self._at = _At.OPENED
            return bare[len(_OPEN):]
        if _OPEN.startswith(bare):
            self._held = text
            return ""
        self._at = _At.ANSWER
        return text

    def _thought(self, text: str) -> tuple[str, str]:
        """What follows the closing tag, and the thinking in front of it."""
        if self._at is _At.OPENED:
            text = text.lstrip()
            self._at = _At.THINKING if text else _At.OPENED
        thinking, tag, behind = text.partition(_CLOSE)
        if tag:
            self._at = _At.CLOSED
            return behind, thinking
        certain = len(text) - _overlap(text)
        self._held = text[certain:]
        return "", text[:certain]


def _overlap(text: str) -> int:
    """How many characters at the end of the text may begin the closing tag."""
    longest = min(len(_CLOSE) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(_CLOSE[:n])), 0)
