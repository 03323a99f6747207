"""Messages: roles, contents, thinking, images and what is wrong about them."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.request.messages import translate
from tests.unit.ollama.request_cases import JPEG, LLAMA, OTHER, PNG, WAV, refusal

PNG_PART = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
JPEG_PART = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{JPEG}"}}
WAV_PART = {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}


def text_part(text: str) -> dict[str, Any]:
    """A part that is text."""
    return {"type": "text", "text": text}


TRANSLATED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"role": "user", "content": "hi"}, {"role": "user", "content": "hi"}),
    ({"role": "system", "content": "grüße 北😀"}, {"role": "system", "content": "grüße 北😀"}),
    ({"role": "User", "content": "hi"}, {"role": "user", "content": "hi"}),
    ({"ROLE": " ASSISTANT ", "Content": "hi"}, {"role": "assistant", "content": "hi"}),
    ({"role": "developer", "content": "hi"}, {"role": "developer", "content": "hi"}),
    ({"role": "user"}, {"role": "user", "content": ""}),
    ({"role": "assistant", "content": None}, {"role": "assistant", "content": ""}),
    ({"role": "assistant", "content": "", "tool_calls": [], "images": [], "thinking": ""},
     {"role": "assistant", "content": ""}),
    ({"role": "assistant", "content": "a", "thinking": "b"},
     {"role": "assistant", "content": "a", "reasoning_content": "b"}),
    ({"role": "user", "content": "a", "thinking": "b", "name": "c", "x": {}, "tool_name": "d"},
     {"role": "user", "content": "a"}),
    ({"role": "user", "content": "a", "images": [PNG]},
     {"role": "user", "content": [text_part("a"), PNG_PART]}),
    ({"role": "user", "images": [PNG, JPEG, WAV]},
     {"role": "user", "content": [PNG_PART, JPEG_PART, WAV_PART]}),
    ({"role": "tool", "content": "3", "images": [PNG]},
     {"role": "tool", "content": [text_part("3"), PNG_PART]}),
    ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]},
     {"role": "user", "content": [text_part("a"), text_part("")]}),
    ({"role": "user", "images": [JPEG], "content": [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "x"}},
        {"type": "image_url", "image_url": PNG},
        {"type": "input_audio", "input_audio": {"data": WAV, "format": "mp3"}}]},
     {"role": "user", "content": [PNG_PART, PNG_PART, WAV_PART, JPEG_PART]}),
]


@pytest.mark.parametrize(("given", "sent"), TRANSLATED, ids=lambda value: repr(value)[:60])
def test_one_message(given: dict[str, Any], sent: dict[str, Any]) -> None:
    """Keys in any case, null as absent, and only what the engine knows."""
    assert translate([given], LLAMA) == [sent]


def test_other_engines_get_no_thinking() -> None:
    """A field of llama-server's is not sent to an engine that may refuse it."""
    thought = {"role": "assistant", "content": "a", "thinking": "b"}
    assert translate([thought], OTHER) == [{"role": "assistant", "content": "a"}]


def test_order_stays() -> None:
    """Messages keep their order, whatever their roles."""
    roles = ["user", "system", "assistant", "assistant", "tool", "user", "system"]
    sent = translate([{"role": role, "content": str(i)} for i, role in enumerate(roles)], LLAMA)
    assert [message["role"] for message in sent] == roles
    assert [message["content"] for message in sent] == [str(i) for i in range(len(roles))]


@pytest.mark.parametrize("messages", [None, []])
def test_no_messages(messages: Any) -> None:
    """None at all is no error."""
    assert translate(messages, LLAMA) == []


def test_the_request_stays_as_it_is() -> None:
    """Translating changes nothing of what the client sent."""
    given = [{"role": "User", "content": "a", "images": [PNG]}, {"role": "assistant", "tool_calls":
             [{"function": {"name": "f", "arguments": {"b": 1}}}]}]
    before = repr(given)
    translate(given, LLAMA)
    assert repr(given) == before


WRONG: list[tuple[Any, str]] = [
    ("hi", "messages must be a list"),
    ({"role": "user"}, "messages must be a list"),
    (["hi"], "messages[0] must be an object"),
    ([{"role": "user"}, None], "messages[1] must be an object"),
    ([{"content": "hi"}], "messages[0].role must not be blank"),
    ([{"role": "  "}], "messages[0].role must not be blank"),
    ([{"role": 5}], "messages[0].role must be a text"),
    ([{"role": "user", "content": 5}], "messages[0].content must be a text"),
    ([{"role": "user", "content": {}}], "messages[0].content must be a text"),
    ([{"role": "user", "content": ["a"]}], "messages[0].content[0] must be an object"),
    ([{"role": "user", "content": [{"type": "text", "text": 5}]}],
     "messages[0].content[0].text must be a text"),
    ([{"role": "user", "content": [{"type": "file"}]}],
     'messages[0].content[0].type "file" is not supported'),
    ([{"role": "user", "content": [{"type": "input_audio", "input_audio": 5}]}],
     "messages[0].content[0].input_audio must be an object"),
    ([{"role": "user", "content": [{"type": "image_url"}]}],
     "an image must be a text in base64"),
    ([{"role": "assistant", "thinking": True}], "messages[0].thinking must be a text"),
    ([{"role": "user", "images": PNG}], "messages[0].images must be a list"),
    ([{"role": "user", "images": ["?"]}], "illegal base64 data at input byte 0"),
    ([{"role": "user", "tool_calls": "x"}], "messages[0].tool_calls must be a list"),
]


@pytest.mark.parametrize(("messages", "text"), WRONG, ids=lambda value: repr(value)[:60])
def test_a_wrong_message_is_refused(messages: Any, text: str) -> None:
    """The refusal says which field of which message it is."""
    assert refusal(translate, messages, LLAMA) == text


@pytest.mark.parametrize("url", ["http://127.0.0.1/x.png", "HTTPS://e.example/x", "file:///x"])
def test_the_engine_is_not_sent_for_an_image(url: str) -> None:
    """An engine would fetch a URL from inside the network: it is refused."""
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    assert refusal(translate, [{"role": "user", "content": parts}], LLAMA) == (
        "image URLs are not currently supported, please use base64 encoded data instead")
