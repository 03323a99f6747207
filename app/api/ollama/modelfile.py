"""What a model that was made of another one adds to its requests. Pure.

Source: github.com/ollama/ollama, server/routes.go (ChatHandler, GenerateHandler, modelOptions).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.api.ollama.request.fields import mapping, objects, text

Fields = dict[str, Any]


@dataclass(frozen=True)
class Modelfile:
    """The additions of one model; empty for one that has none. ``base`` is what it was made of."""

    base: str = ""
    system: str = ""
    template: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Fields, ...] = ()
    licences: tuple[str, ...] = ()

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Modelfile":
        """What a manifest has under ``modelfile``; what is no such thing in it does not count."""
        parameters, licence = stored.get("parameters"), stored.get("license")
        return cls(
            base=_text(stored.get("from")),
            system=_text(stored.get("system")),
            template=_text(stored.get("template")),
            parameters=parameters if isinstance(parameters, dict) else {},
            messages=tuple(m for m in _list(stored.get("messages")) if isinstance(m, dict)),
            licences=tuple(filter(None, map(_text, [licence, *_list(licence)]))),
        )

    def for_chat(self, fields: Fields) -> Fields:
        """The fields of a chat with what is added: its own system message and options win."""
        asked = objects(fields.get("messages"), "messages")
        messages = [*self.messages, *asked]
        if self.system and _role(asked[0]) != "system":
            messages.insert(0, {"role": "system", "content": self.system})
        return {**fields, **self._options(fields), "messages": messages, "template": self.template}

    def for_generate(self, fields: Fields) -> Fields:
        """The fields of a prompt with what is added; to a raw one only options are.

        Messages go before it, unless it has a context, which holds them already.
        """
        made = {**fields, **self._options(fields), "earlier": []}
        if fields.get("raw") is True:
            return made
        if not fields.get("context"):
            made["earlier"] = list(self.messages)
        made["system"] = text(fields.get("system"), "system") or self.system
        between = not fields.get("suffix") or ".Suffix" in self.template
        made["template"] = text(fields.get("template"), "template") or (
            self.template if between else "")
        return made

    def _options(self, fields: Fields) -> Fields:
        if not self.parameters:
            return {}
        asked = mapping(fields.get("options"), "options")
        given = {name: value for name, value in asked.items() if value is not None}
        return {"options": {**self.parameters, **given}}


NOTHING = Modelfile()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _role(message: Fields) -> str:
    role = next((value for key, value in message.items() if key.lower() == "role"), "")
    return role.strip().lower() if isinstance(role, str) else ""
