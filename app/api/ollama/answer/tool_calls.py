"""Tool calls, of which an engine sends fragments and an Ollama client gets whole ones."""

from typing import Any

from app import jsontext
from app.api.ollama.answer.failure import unreadable
from app.errors import GatewayError

Call = dict[str, Any]  # ToolCall of github.com/ollama/ollama, api/types.go


class ToolCalls:
    """Puts the calls of one answer together, one after the other."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._ended = 0

    def take(self, deltas: Any) -> list[Call]:
        """The calls that are whole because these deltas begin others.

        Raises GatewayError where one has no name, or arguments that are not a JSON object.
        """
        ended: list[Call] = []
        for delta in deltas if isinstance(deltas, list) else []:
            if not isinstance(delta, dict):
                continue
            if self._open is None or self._open.is_over_with(delta):
                ended += self.rest()
                self._open = _Open(delta.get("index"))
            self._open.add(delta)
        return ended

    def rest(self) -> list[Call]:
        """The call that is still open, which the end of the answer makes whole; raises as above."""
        if self._open is None:
            return []
        call = self._open.call(self._ended)
        self._open = None
        self._ended += 1
        return [call]


class _Open:
    """One call whose fragments are still coming."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self._id = ""
        self._name = ""
        self._fragments: list[str] = []
        self._given: Any = None  # by an engine that sends the object itself, not its text

    def is_over_with(self, delta: dict[str, Any]) -> bool:
        """Whether a delta is of the next call.

        There are engines that number no calls, or all of them 0, and engines that send another id
        with every fragment; none of them repeats the name within a call.
        """
        index, found = delta.get("index"), delta.get("id")
        if index is not None and index != self._index:
            return True
        again = bool(self._name and _function(delta).get("name"))
        return again and (index is None or bool(found and found != self._id))

    def add(self, delta: dict[str, Any]) -> None:
        """Take the next fragment."""
        function = _function(delta)
        found, name, arguments = delta.get("id"), function.get("name"), function.get("arguments")
        if isinstance(found, str):
            self._id = self._id or found
        if isinstance(name, str) and name != self._name:
            self._name += name
        if isinstance(arguments, str):
            self._fragments.append(arguments)
        elif arguments is not None:
            self._given = arguments

    def call(self, index: int) -> Call:
        """The whole call; its ``id`` is left out where the engine gave none."""
        if not self._name:
            raise unreadable("a tool call without a name")
        function = {"index": index, "name": self._name, "arguments": self._arguments()}
        return {"id": self._id, "function": function} if self._id else {"function": function}

    def _arguments(self) -> dict[str, Any]:
        text = "".join(self._fragments)
        try:
            # What is given as it is gets read again too: nothing that JSON cannot hold gets out.
            given = self._given is not None
            raw = jsontext.encode(self._given) if given else text.encode("utf-8", _ESCAPE)
            found = jsontext.decode(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            raise self._refused("that are not valid JSON") from None
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self._refused("that are no JSON object")
        return found

    def _refused(self, why: str) -> GatewayError:
        return unreadable(f"a call of the tool '{self._name}' with arguments {why}")


_ESCAPE = "backslashreplace"  # half a surrogate pair becomes the JSON escape that it came from


def _function(delta: dict[str, Any]) -> dict[str, Any]:
    found = delta.get("function")
    return found if isinstance(found, dict) else {}
