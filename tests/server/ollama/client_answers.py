"""What Ollama's clients read of a chat and of an answer to a prompt, each restated as a check.

A check takes the lines of a stream as the client gets them and returns what the client makes of
them; it raises AssertionError or KeyError where the client would fail.
"""

from __future__ import annotations

from typing import Any

from tests.server.ollama.ndjson import METRICS, Line
from tests.unit.ollama.client_shapes import TIME, typed


def zed_chat(lines: list[Line]) -> tuple[str, list[tuple[str, Any]]]:
    """Zed's serde structs: text and the calls that it sees, which is one of a line."""
    content, calls = "", []
    for line in lines:
        for key, kind in (("model", str), ("created_at", str), ("message", dict), ("done", bool)):
            typed(line, key, kind)
        message = line["message"]
        assert typed(message, "role", str) in ("system", "user", "assistant", "tool")
        content += typed(message, "content", str)
        typed(message, "thinking", str, optional=True)
        for call in message.get("tool_calls", [])[:1]:
            function = call["function"]
            calls.append((typed(function, "name", str), typed(function, "arguments", dict)))
    for key in ("prompt_eval_count", "eval_count"):
        typed(lines[-1], key, int, optional=True)
    return content, calls


def ollama_kit_chat(lines: list[Line]) -> str:
    """OllamaKit's struct (Enchanted): a date, a role that it knows, numbers that are whole."""
    for line in lines:
        assert TIME.fullmatch(typed(line, "created_at", str))
        assert line["message"]["role"] in ("system", "user", "assistant")
        typed(line, "done", bool)
        typed(line, "done_reason", str, optional=True)
        for name in METRICS:
            typed(line, name, int, optional=True)
    return "".join(line["message"]["content"] for line in lines)


def continue_dev_chat(lines: list[Line]) -> str:
    """Continue: an "error" throws, and a "type" is taken for another kind of event."""
    assert not any({"error", "type"} & set(line) for line in lines)
    return "".join(line["message"]["content"] for line in lines)


def ollama_js(lines: list[Line]) -> Line:
    """ollama-js: a stream whose last line is neither done nor an error throws."""
    assert not any("error" in line for line in lines)
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    return lines[-1]


def llm_ollama(lines: list[Line]) -> tuple[int, int]:
    """llm-ollama: the counts are there in the last line, or it ends in a KeyError."""
    return lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]


def anything_llm(lines: list[Line]) -> float:
    """AnythingLLM's tokens per second."""
    return float(lines[-1]["eval_count"] / (lines[-1]["eval_duration"] / 1e9))


def raycast(lines: list[Line]) -> bool:
    """Raycast's guard: a text, and at the end a number for each metric."""
    texts = [line.get("message", {}).get("content", line.get("response")) for line in lines]
    return all(type(text) is str for text in texts) and all(
        type(lines[-1][name]) is int for name in METRICS)


def open_webui(body: bytes) -> int:
    """Open WebUI's reader gives up on a line of 128 KiB; the longest there is."""
    longest = max(map(len, body.split(b"\n")))
    assert longest < 2**17
    return longest


def langchain(lines: list[Line]) -> tuple[str, str]:
    """LangChain: text and reason; an empty "load" would be skipped as if nothing had come."""
    said = [line for line in lines if line.get("done_reason") != "load"]
    return "".join(line["message"]["content"] for line in said), said[-1]["done_reason"]
