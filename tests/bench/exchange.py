"""What load and engine say to each other: one OpenAI-shaped request, its answer, its events.

How many events are wanted stands in the text of the question, and an event carries its number and
the time of its sending in the text of its delta: whatever stands between engine and load may write
the JSON around these texts anew, and leave out fields that it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MODEL = "example-org/bench:latest"
CHAT, OLLAMA_CHAT = "/v1/chat/completions", "/api/chat"
TEXT = b"Light scatters off air, blue most of all, so the sky is blue wherever you look."
EVENT = re.compile(rb'"content": ?"(\d+) (\d+)"')  # number, nanoseconds on the monotonic clock
WANTED = re.compile(rb"\[(\d+) events, (\d+) ms apart\]")
DONE = re.compile(rb'data: \[DONE\]|"done": ?true')  # of OpenAI's API, and of Ollama's

_MESSAGES = [
    {"role": "system", "content": "You answer in one sentence, plainly, without a preamble. " * 3},
    {"role": "user", "content": "Why is the sky blue by day, and red when the sun sets?"},
]
_COMMON = (
    b'"id":"chatcmpl-bench0123456789abcdef","created":1700000000,"model":"%b"' % MODEL.encode()
)
_EVENT = (
    b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"%d %d"}}],'
    + _COMMON + b',"object":"chat.completion.chunk"}\n\n'
)
_LAST = (
    b'data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],'
    + _COMMON + b',"object":"chat.completion.chunk"}\n\ndata: [DONE]\n\n'
)

COMPLETION = (
    b'{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"'
    + TEXT + b'"}}],' + _COMMON + b',"object":"chat.completion",'
    b'"usage":{"completion_tokens":18,"prompt_tokens":52,"total_tokens":70}}'
)
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def question(headers: Mapping[str, str]) -> bytes:
    """A chat request that wants one whole answer."""
    return post(CHAT, headers, {"model": MODEL, "messages": _MESSAGES})


def stream_question(path: str, headers: Mapping[str, str], events: int, every_ms: int) -> bytes:
    """A chat request that wants so many events, so far apart."""
    wanted = {"role": "user", "content": f"[{events} events, {every_ms} ms apart]"}
    return post(path, headers, {
        "model": MODEL, "messages": [*_MESSAGES, wanted], "stream": True})


def picture_question(headers: Mapping[str, str], size: int) -> bytes:
    """A chat request with a picture of so many bytes, as base64."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * size}}
    text = {"type": "text", "text": "What is to be seen here?"}
    return post(CHAT, headers, {
        "model": MODEL, "messages": [{"role": "user", "content": [text, picture]}]})


def post(path: str, headers: Mapping[str, str], fields: Mapping[str, Any]) -> bytes:
    """A whole request with these fields as its body."""
    body = json.dumps(fields).encode()
    known = {"Host": "127.0.0.1", "Accept": "*/*", "User-Agent": "bench", **headers,
             "Content-Type": "application/json", "Content-Length": str(len(body))}
    return head(f"POST {path}", known) + body


def head(start: str, headers: Mapping[str, str]) -> bytes:
    """The head of a request."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{start} HTTP/1.1\r\n{lines}\r\n".encode()


def answer(body: bytes) -> bytes:
    """A whole 200 answer with a JSON body."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


def event(number: int, nanoseconds: int) -> bytes:
    """One event of a stream, as a chunk."""
    return _chunk(_EVENT % (number, nanoseconds))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAM_END = _chunk(_LAST) + b"0\r\n\r\n"
