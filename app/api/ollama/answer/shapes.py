"""Lines in Ollama's order of fields (github.com/ollama/ollama, api/types.go)."""

from collections.abc import Callable
from typing import Any, NamedTuple

Line = dict[str, Any]


class Said(NamedTuple):
    """What a line says."""

    content: str = ""
    thinking: str = ""
    calls: list[Line] | None = None
    logprobs: list[Line] | None = None


class End(NamedTuple):
    """What the last line says beside it."""

    reason: str
    metrics: dict[str, int]
    context: list[int]


Shape = Callable[[Line, Said, End | None], Line]


def chat_line(head: Line, said: Said, end: End | None = None) -> Line:
    """ChatResponse: ``head`` is what every line begins with."""
    message: Line = {"role": "assistant", "content": said.content}
    if said.thinking:
        message["thinking"] = said.thinking
    if said.calls:
        message["tool_calls"] = said.calls
    line = {**head, "message": message, "done": end is not None}
    if end:
        line["done_reason"] = end.reason
    if said.logprobs:
        line["logprobs"] = said.logprobs
    if end:
        line.update(end.metrics)
    return line


def generate_line(head: Line, said: Said, end: End | None = None) -> Line:
    """GenerateResponse, as above."""
    line = {**head, "response": said.content}
    if said.thinking:
        line["thinking"] = said.thinking
    line["done"] = end is not None
    if end:
        line["done_reason"] = end.reason
        if end.context:
            line["context"] = end.context
        line.update(end.metrics)
    if said.calls:
        line["tool_calls"] = said.calls
    if said.logprobs:
        line["logprobs"] = said.logprobs
    return line
