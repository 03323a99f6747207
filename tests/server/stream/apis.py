"""The streaming APIs that an engine speaks, each with a request, its events and its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.engine_steps import COMPLETION
from tests.fakes.sse import Event
from tests.fakes.stream_steps import DONE, STOP, data, ev

Fields = dict[str, Any]


@dataclass(frozen=True)
class Api:
    """One endpoint: what to ask, what an engine streams, and how a client knows the end."""

    path: str
    ask: Fields
    event: Callable[[str], bytes]
    end: bytes
    ends: Callable[[Event], bool]
    error: bytes
    whole: bytes = COMPLETION
    anthropic: bool = False
    begin: bytes = field(default=b"", repr=False)

    @property
    def id(self) -> str:
        """A name for the table."""
        return self.path.strip("/").replace("/", "_")

    def body(self, **more: object) -> bytes:
        """The request as JSON."""
        return json.dumps({"model": "m", **self.ask, **more}).encode()

    def events(self, count: int) -> list[bytes]:
        """The first events of a stream."""
        return [self.begin + self.event("1"), *map(self.event, "2345")][:count]


def _openai_end(event: Event) -> bool:
    found = event.json()
    choices = (found.get("choices") or []) if isinstance(found, dict) else []
    return event.data == "[DONE]" or any(choice.get("finish_reason") for choice in choices)


def _typed(*kinds: str) -> Callable[[Event], bool]:
    def ends(event: Event) -> bool:
        found = event.json()
        return isinstance(found, dict) and found.get("type") in kinds
    return ends


def _stop(event: Event) -> bool:
    found = event.json()
    return isinstance(found, dict) and found.get("stop") is True


def _text(text: str) -> bytes:
    return data({"id": "c", "object": "text_completion", "created": 1, "model": "m",
                 "choices": [{"index": 0, "text": text, "finish_reason": None}]})


def _token(text: str) -> bytes:
    return data({"index": 0, "content": text, "tokens": [7], "stop": False, "id_slot": -1})


def _delta(text: str) -> bytes:
    return data({"type": "content_block_delta", "index": 0,
                 "delta": {"type": "text_delta", "text": text}}, "content_block_delta")


def _output(text: str) -> bytes:
    return data({"type": "response.output_text.delta", "item_id": "i", "output_index": 0,
                 "content_index": 0, "sequence_number": 1, "delta": text, "logprobs": []},
                "response.output_text.delta")


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
           "content": [], "stop_reason": None, "stop_sequence": None,
           "usage": {"input_tokens": 3, "output_tokens": 1}}
BOOM: Fields = {"code": 500, "message": "boom", "type": "server_error"}
_MESSAGES = [{"role": "user", "content": "hi"}]

CHAT = Api(
    "/v1/chat/completions", {"messages": _MESSAGES}, ev, STOP + DONE, _openai_end,
    data({"error": BOOM}))
COMPLETIONS = Api(
    "/v1/completions", {"prompt": "hi"}, _text,
    data({"object": "text_completion", "model": "m",
          "choices": [{"index": 0, "text": "", "finish_reason": "length"}]}) + DONE,
    _openai_end, data({"error": BOOM}))
NATIVE = Api(
    "/completion", {"prompt": "hi"}, _token,
    data({"index": 0, "content": "", "stop": True, "stop_type": "eos", "timings": {}}),
    _stop, data({"error": BOOM}), whole=b'{"content":"hi","stop":true}')
MESSAGES = Api(
    "/v1/messages", {"messages": _MESSAGES, "max_tokens": 9}, _delta,
    data({"type": "content_block_stop", "index": 0}, "content_block_stop")
    + data({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2}}, "message_delta")
    + data({"type": "message_stop"}, "message_stop"),
    _typed("message_stop"),
    data({"type": "error", "error": {"type": "api_error", "message": "boom"}}, "error"),
    whole=json.dumps({**MESSAGE, "content": [{"type": "text", "text": "hi"}],
                      "stop_reason": "end_turn"}).encode(),
    anthropic=True,
    begin=data({"type": "message_start", "message": MESSAGE}, "message_start")
    + data({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}}, "content_block_start"))
RESPONSES = Api(
    "/v1/responses", {"input": "hi"}, _output,
    data({"type": "response.completed", "sequence_number": 9,
          "response": {"id": "r", "object": "response", "status": "completed"}},
         "response.completed"),
    _typed("response.completed"), data({"error": BOOM}, "error"),
    whole=b'{"id":"r","object":"response","status":"completed"}')
EMBEDDINGS = Api(
    "/v1/embeddings", {"input": "hi"}, ev, b"", _openai_end, b"",
    whole=b'{"object":"list","data":[{"index":0,"embedding":[0.25,1.5]}]}')

STREAMING = [CHAT, COMPLETIONS, NATIVE, MESSAGES, RESPONSES]
EVERY = [*STREAMING, EMBEDDINGS]


def named(api: Api) -> str:
    """The id of a parameter."""
    return api.id
