"""What load and engine say to each other: one OpenAI-shaped request, its answer, its events.

An event carries its number and the time of its sending in the text of its delta: whatever stands
between engine and load may write the JSON around that text anew.
"""

from __future__ import annotations

import json
import re
from typing import Any

MODEL = "example-org/bench:latest"
PATH = "/v1/chat/completions"
TEXT = b"Light scatters off air, blue most of all, so the sky is blue wherever you look."
EVENT = re.compile(rb'"content": ?"(\d+) (\d+)"')  # number, nanoseconds on the monotonic clock
DONE = b"data: [DONE]"

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
    + _COMMON + b',"object":"chat.completion.chunk"}\n\n' + DONE + b"\n\n"
)

COMPLETION = (
    b'{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"'
    + TEXT + b'"}}],' + _COMMON + b',"object":"chat.completion",'
    b'"usage":{"completion_tokens":18,"prompt_tokens":52,"total_tokens":70}}'
)
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def request(**fields: Any) -> bytes:
    """A whole chat request with these fields in its body beside the model and the messages."""
    body = json.dumps({"model": MODEL, "messages": _MESSAGES, **fields}).encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: bench\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


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
