"""Ollama's messages as OpenAI's. What neither API knows of a message is left out."""

from typing import Any

from app.api.ollama.refusal import invalid, quoted
from app.api.ollama.request import images
from app.api.ollama.request.fields import items, lowered, mapping, objects, text
from app.api.ollama.request.tool_calls import ToolCalls
from app.engine_facts import EngineFacts

Message = dict[str, Any]


def translate(messages: Any, facts: EngineFacts) -> list[Message]:
    """The messages for the engine. Raises Refusal for the first that is wrong, with its path."""
    plain = [lowered(message) for message in objects(messages, "messages")]
    calls = ToolCalls(plain)
    return [_message(m, f"messages[{i}]", calls, facts) for i, m in enumerate(plain)]


def _message(message: Message, path: str, calls: ToolCalls, facts: EngineFacts) -> Message:
    role = text(message.get("role"), f"{path}.role").strip().lower()
    if not role:
        raise invalid(f"{path}.role must not be blank")
    made: Message = {"role": role, "content": _content(message, path)}
    if role == "assistant":
        thinking = text(message.get("thinking"), f"{path}.thinking")
        if thinking and facts.is_llama_server:  # other engines refuse what they do not know
            made["reasoning_content"] = thinking
        asked = calls.asked(message, path)
        if asked:
            made["tool_calls"] = asked
    elif role == "tool":
        made.update(calls.answered(message, path))
    return made


def _content(message: Message, path: str) -> Any:
    """A text, or a list of parts where there are images; a list of OpenAI's parts is taken too."""
    content = message.get("content")
    pictures = [images.part(image) for image in items(message.get("images"), f"{path}.images")]
    if isinstance(content, list):
        said = [_part(part, f"{path}.content[{i}]")
                for i, part in enumerate(objects(content, f"{path}.content"))]
        return said + pictures
    plain = text(content, f"{path}.content")
    if not pictures:
        return plain
    return [{"type": "text", "text": plain}, *pictures] if plain else pictures


def _part(part: dict[str, Any], path: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": text(part.get("text"), f"{path}.text")}
    if kind == "image_url":
        image = part.get("image_url")
        return images.part(_inline(image.get("url") if isinstance(image, dict) else image))
    if kind == "input_audio":
        return images.part(mapping(part.get("input_audio"), f"{path}.input_audio").get("data"))
    raise invalid(f"{path}.type {quoted(str(kind))} is not supported")


def _inline(url: Any) -> Any:
    """The URL, unless it is one that the engine would fetch, from wherever it points to."""
    if isinstance(url, str) and url.lower().startswith(("http:", "https:", "file:")):
        raise invalid("image URLs are not currently supported, "
                      "please use base64 encoded data instead")
    return url
