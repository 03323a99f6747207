"""Tool calls of a conversation: each gets an id, and each result the id of the call it answers."""

from collections.abc import Iterable, Iterator
from typing import Any

from app import jsontext
from app.api.ollama.refusal import invalid
from app.api.ollama.request.fields import lowered, mapping, mended, objects, text


class ToolCalls:
    """The calls of one conversation, taken message by message in their order."""

    def __init__(self, messages: Iterable[dict[str, Any]]) -> None:
        """``messages`` are all of the conversation: an id that one of them names is not made."""
        calls = [lowered(call) for i, message in enumerate(messages)
                 for call in objects(message.get("tool_calls"), f"messages[{i}].tool_calls")]
        self._given = {call["id"] for call in calls if isinstance(call.get("id"), str)}
        self._fresh = self._unused()
        self._open: list[tuple[str, str]] = []  # id and name of those without a result yet

    def asked(self, message: dict[str, Any], path: str) -> list[dict[str, Any]]:
        """The calls of an assistant's message, as engines want them. Raises Refusal."""
        given = objects(message.get("tool_calls"), f"{path}.tool_calls")
        calls = [self._call(lowered(call), f"{path}.tool_calls[{i}]")
                 for i, call in enumerate(given)]
        if calls:
            self._open = [(call["id"], call["function"]["name"]) for call in calls]
        return calls

    def answered(self, message: dict[str, Any], path: str) -> dict[str, str]:
        """The fields of a tool's message that say which call it answers.

        1. by its id, whatever it is; 2. by the tool's name; 3. the first that has no answer yet.
        A result that answers no call gets no id.
        """
        own_id = text(message.get("tool_call_id"), f"{path}.tool_call_id")
        own_name = (text(message.get("tool_name"), f"{path}.tool_name")
                    or text(message.get("name"), f"{path}.name"))
        if own_id:
            found = next((call for call in self._open if call[0] == own_id), (own_id, ""))  # 1
        else:
            named = [call for call in self._open if call[1] == own_name]  # 2
            found = next(iter(named or self._open), ("", ""))  # 3
        if found in self._open:
            self._open.remove(found)
        fields = {"tool_call_id": found[0], "name": own_name or found[1]}
        return {key: value for key, value in fields.items() if value}

    def _call(self, call: dict[str, Any], path: str) -> dict[str, Any]:
        function = lowered(mapping(call.get("function"), f"{path}.function"))
        name = text(function.get("name"), f"{path}.function.name")
        if not name:
            raise invalid(f"{path}.function.name must not be blank")
        arguments = _arguments(function.get("arguments"), f"{path}.function.arguments")
        call_id = text(call.get("id"), f"{path}.id") or next(self._fresh)
        return {"id": call_id, "type": "function",
                "function": {"name": name, "arguments": arguments}}

    def _unused(self) -> Iterator[str]:
        """Ids by position, so that a conversation that goes on keeps those of its beginning."""
        number = 0
        while True:
            number += 1
            made = f"call_{number:08d}"
            if made not in self._given:
                yield made


def _arguments(value: Any, path: str) -> str:
    """The JSON text of an object; a text that holds one is taken as it is, a blank one is empty.

    Half a surrogate pair that such a text escapes is mended like any other.
    """
    if value is None or value == "":
        return "{}"
    if isinstance(value, dict):
        return jsontext.encode(value).decode()
    found = _object_in(value) if isinstance(value, str) else None
    if found is None:
        raise invalid(f"{path} must be an object")
    sound = mended(found)
    return str(value) if sound == found else jsontext.encode(sound).decode()


def _object_in(value: str) -> dict[str, Any] | None:
    try:
        found = jsontext.decode(value.encode())
    except jsontext.JsonError:
        return None
    return found if isinstance(found, dict) else None
