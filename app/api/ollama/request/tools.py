"""The tools of a chat request, which engines take as they are."""

from typing import Any

from app.api.ollama.refusal import invalid
from app.api.ollama.request.fields import mapping, objects, text
from app.api.ollama.request.schemas import bearable
from app.engine_facts import EngineFacts

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def translate(tools: Any, facts: EngineFacts) -> list[dict[str, Any]]:
    """The tools with all that engines insist on; every other key, of schemas too, stays.

    Raises Refusal for the first that is wrong, or more than a llama-server can bear.
    """
    return [_tool(tool, f"tools[{i}]", facts) for i, tool in enumerate(objects(tools, "tools"))]


def _tool(tool: dict[str, Any], path: str, facts: EngineFacts) -> dict[str, Any]:
    function = mapping(tool.get("function"), f"{path}.function")
    if not text(function.get("name"), f"{path}.function.name"):
        raise invalid(f"{path}.function.name must not be blank")
    parameters = mapping(function.get("parameters"), f"{path}.function.parameters")
    if facts.is_llama_server:
        bearable(parameters, f"{path}.function.parameters")
    whole = {**function, "parameters": parameters or _NO_PARAMETERS}
    return {**tool, "type": tool.get("type") or "function", "function": whole}
