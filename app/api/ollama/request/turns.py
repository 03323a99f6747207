"""A chat as the text that a template of Go's makes of it, turn by turn.

Source: github.com/ollama/ollama, template/template.go (Execute, for templates without .Messages).
"""

from typing import Any

from app.api.ollama.refusal import invalid
from app.api.ollama.request import images, template
from app.api.ollama.request.completion import Prompt
from app.api.ollama.request.fields import items, lowered, objects, text

_ROLES = ("system", "user", "assistant")
_RESPONSE = "{{ .Response }}"


def prompt(source: str, messages: Any) -> Prompt:
    """The prompt that ``source`` makes of the messages. Raises Refusal."""
    plain = [lowered(message) for message in objects(messages, "messages")]
    turn = _Turn(source)
    pictures: list[str] = []
    said: list[str] = []
    for i, message in enumerate(plain):
        role = text(message.get("role"), f"messages[{i}].role").strip().lower()
        if role not in _ROLES:
            raise invalid(f"messages[{i}].role must be system, user or assistant: the model's "
                          "template knows no other")
        found = items(message.get("images"), f"messages[{i}].images")
        tags = "".join(f"[img-{len(pictures) + n}]" for n in range(len(found)))
        pictures += [images.read(image).data for image in found]
        said.append(turn.add(role, tags + text(message.get("content"), f"messages[{i}].content")))
    return Prompt("".join([*said, turn.last()]), images=tuple(pictures))


class _Turn:
    """What has been said since the template was used last."""

    def __init__(self, source: str) -> None:
        self._source = source if ".Response" in source else source + _RESPONSE
        self._values = {"system": "", "prompt": "", "response": ""}

    def add(self, role: str, content: str) -> str:
        """Note one message; the text of the turn that it ends, "" where it ends none."""
        key = {"user": "prompt", "assistant": "response"}.get(role, role)
        values = self._values
        ended = bool(values["response"]) and key != "response" or (
            key == "system" and bool(values["prompt"]))
        said = self._rendered(whole=True) if ended else ""
        before = self._values[key]
        self._values[key] = f"{before}\n\n{content}" if before else content
        return said

    def last(self) -> str:
        """The text of the turn that the answer goes on with."""
        return self._rendered(whole=False)

    def _rendered(self, whole: bool) -> str:
        said = template.render(self._source, self._values, whole)
        self._values = dict.fromkeys(self._values, "")
        return said
