"""The answer side of /api/chat and /api/generate: an engine's reply as Ollama's lines.

    events      bytes → the engine's events, whatever they are wrapped in
    parts       one event → what it adds, in each style of engine API
    tool_calls, think, logprobs, portions, repeats, metrics      one concern of a line each
    shapes      what was said → a line in Ollama's order of fields
    lines       the road through all of these, event by event
    whole       all lines as the one object of ``"stream": false``
"""

from app.api.ollama.answer.answer import Answer
from app.api.ollama.answer.failure import FailureLine
from app.api.ollama.answer.lines import chat_lines, generate_lines
from app.api.ollama.answer.whole import whole

__all__ = ["Answer", "FailureLine", "chat_lines", "generate_lines", "whole"]
