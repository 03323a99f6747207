"""The part of Go's text/template in which prompt templates are usually written.

Taken are ``{{ .System }}``, ``.Prompt``, ``.Response``, ``.Suffix``, ``if`` one of them, ``else``,
``else if``, ``end``, comments and the trim markers. Any other action is refused by name.
"""

import re
from collections.abc import Iterator

from app.api.ollama.refusal import Refusal, invalid, quoted

_LEFT = re.compile(r"-\s")
_RIGHT = re.compile(r"\s-$")
_VARIABLE = re.compile(r"\.(System|Prompt|Response|Suffix)")
_IF = re.compile(r"if\s+\.(System|Prompt|Response|Suffix)")
_SPACE = " \t\r\n"  # what Go trims


class _Branches:
    """The ifs that are open: of each, whether its present branch is shown and one was already."""

    def __init__(self) -> None:
        self._open: list[tuple[bool, bool, bool]] = []  # shown, done, is the last branch
        self._hidden = 0  # of the open ones

    @property
    def shown(self) -> bool:
        return not self._hidden

    @property
    def whole(self) -> bool:
        return not self._open

    def begin(self, true: bool) -> None:
        self._push(true, true, False)

    def other(self, true: bool, last: bool) -> None:
        """Begin another branch of the innermost if, shown if it is the first true one."""
        done, ended = self.end()
        if ended:
            raise invalid("template: a branch after {{ else }}")
        self._push(true and not done, done or true, last)

    def end(self) -> tuple[bool, bool]:
        """End the innermost if: whether a branch of it was shown, and whether it had its last."""
        shown, done, last = self._open.pop()
        self._hidden -= not shown
        return done, last

    def _push(self, shown: bool, done: bool, last: bool) -> None:
        self._open.append((shown, done, last))
        self._hidden += not shown


def render(template: str, values: dict[str, str], whole: bool = False) -> str:
    """The prompt that ``template`` makes of ``values``, keyed by the names in lower case.

    It ends behind ``.Response``, where the answer goes on, unless the ``whole`` template
    is wanted. Raises Refusal for what is not supported and for an if without its end.
    """
    branches = _Branches()
    shown: list[str] = []
    ended = False
    for is_action, piece in _pieces(template):
        answer = False
        if not is_action:
            text = piece
        elif match := _VARIABLE.fullmatch(piece):
            text = values.get(match[1].lower(), "")
            answer = match[1] == "Response"
        else:
            text = ""
            _branch(branches, piece, values)
        if branches.shown and not ended:
            shown.append(text)
        ended = ended or (answer and not whole)
    if not branches.whole:
        raise invalid("template: unexpected EOF, an {{ if }} has no {{ end }}")
    return "".join(shown)


def _branch(branches: _Branches, action: str, values: dict[str, str]) -> None:
    words = action.split()
    condition = _IF.fullmatch(action.removeprefix("else").lstrip())
    true = bool(condition and values.get(condition[1].lower()))
    if words[:1] == ["if"] and condition:
        branches.begin(true)
    elif words not in (["else"], ["end"]) and not (words[:2] == ["else", "if"] and condition):
        raise _unsupported(action)
    elif branches.whole:
        raise invalid(f"template: unexpected {{{{ {action} }}}}")
    elif words == ["end"]:
        branches.end()
    else:
        branches.other(true or words == ["else"], last=words == ["else"])


def _pieces(template: str) -> Iterator[tuple[bool, str]]:
    """(False, text) and (True, action without its braces) in turn, trim markers applied."""
    position, trim = 0, False
    while (start := template.find("{{", position)) >= 0:
        end = template.find("}}", start)
        if end < 0:
            raise invalid("template: unclosed action")
        inside = template[start + 2:end]
        left, right = _LEFT.match(inside), _RIGHT.search(inside[-2:])
        text = template[position:start]
        text = text.lstrip(_SPACE) if trim else text
        yield False, text.rstrip(_SPACE) if left else text
        action = inside[1 if left else 0:-1 if right else None].strip()
        if not (action.startswith("/*") and action.endswith("*/")):
            yield True, action
        position, trim = end + 2, bool(right)
    yield False, template[position:].lstrip(_SPACE) if trim else template[position:]


def _unsupported(action: str) -> Refusal:
    return invalid(f"template: the action {quoted(action)} is not supported; only .System, .Prompt,"
                   " .Response, .Suffix, if, else and end are")
