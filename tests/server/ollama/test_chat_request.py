"""What of a chat reaches the engine, and what never does."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image

from tests.fakes.raw_client import fetch
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import JSON, ollama_error, post, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import CHAT, HI, WORK, chat, sent
from tests.server.ollama.engine_answers import failing
from tests.server.ollama.ndjson import success
from tests.server.ollama.served_models import NICK, OTHER, SEER, TALKER, TOOLER

BASE = {"model", "messages", "stream", "stream_options"}  # what engines of every make are sent


def asked(gateway: GatewayProcess, engine: RawEngine, **fields: Any) -> dict[str, Any]:
    """What the engine is asked for a chat with these fields, which has to succeed."""
    assert success(chat(gateway.url, **fields))
    return sent(engine)


@pytest.mark.parametrize("streaming", [{}, {"stream": True}, {"stream": False}, {"stream": None}],
                         ids=repr)
def test_the_engine_always_streams(
        gateway: GatewayProcess, engine: RawEngine, streaming: dict[str, Any]) -> None:
    """Whether or not the client wants a stream; and it counts."""
    assert chat(gateway.url, **streaming).status == 200
    body = sent(engine)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


def test_another_make_gets_nothing_that_it_was_not_asked_for(
        gateway: GatewayProcess, other: RawEngine) -> None:
    """Strict engines refuse what they do not know."""
    everything = {"keep_alive": "5m", "think": False, "truncate": True, "shift": True, "tools": [],
                  "format": "", "options": {"top_k": 5, "num_ctx": 4096, "num_keep": 2}}
    body = asked(gateway, other, model=OTHER, **everything)
    assert set(body) == BASE and body["model"] == OTHER


def test_nothing_of_ollamas_own_reaches_a_llama_server(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Its fields have other names there, or are the gateway's business."""
    body = asked(gateway, engine, keep_alive=-1, truncate=True, shift=False, options={}, think=None,
                 _debug_render_only=False, name="x", template="t", unknown={"a": [1]})
    assert not set(body) & {"keep_alive", "truncate", "shift", "options", "think", "name",
                            "template", "_debug_render_only", "unknown", "raw", "prompt"}


@pytest.mark.parametrize("name", [TALKER, TALKER.upper(), TALKER.title()])
def test_the_engine_gets_the_registrys_name(
        gateway: GatewayProcess, engine: RawEngine, name: str) -> None:
    """In its own spelling, whatever the client's is."""
    assert asked(gateway, engine, model=name)["model"] == TALKER


def test_an_alias_is_its_model(gateway: GatewayProcess, engine: RawEngine) -> None:
    """To the engine; the client sees the name it asked for."""
    said, last = success(chat(gateway.url, model=NICK))
    assert {line["model"] for line in [*said, last]} == {NICK}
    assert sent(engine)["model"] == "org/x"


def test_keys_are_matched_in_any_case(gateway: GatewayProcess, engine: RawEngine) -> None:
    """As Go's decoder does, in messages too."""
    body = {"MODEL": TOOLER, "Messages": [{"Role": "user", "CONTENT": "hi"}], "Stream": False,
            "OPTIONS": {"seed": 5}, "Format": "json", "Keep_Alive": "1m",
            "tOOLS": [{"type": "function", "function": {"name": "f"}}]}
    answer = post(gateway.url, CHAT, body)
    assert answer.header("Content-Type") == "application/json; charset=utf-8"
    found = sent(engine)
    assert found["messages"] == HI and found["seed"] == 5
    assert found["response_format"] == {"type": "json_object"}
    assert found["tools"][0]["function"]["name"] == "f"


def test_null_is_as_good_as_nothing(gateway: GatewayProcess, engine: RawEngine) -> None:
    """In every field there is, and inside of messages and options."""
    fields = ["stream", "format", "keep_alive", "tools", "options", "think", "truncate", "shift",
              "logprobs", "top_logprobs", "_debug_render_only"]
    message = {"images": None, "thinking": None, "tool_calls": None, "tool_name": None,
               "tool_call_id": None, **HI[0]}
    nulls: dict[str, Any] = {name: None for name in fields}
    with_nulls = asked(gateway, engine, **nulls, messages=[message])
    with_nulls_inside = chat(gateway.url, options={
        name: None for name in ("seed", "stop", "temperature", "num_predict", "mirostat")})
    assert success(with_nulls_inside)
    plain = chat(gateway.url)
    assert success(plain)
    bodies = [json.loads(request.body) for request in engine.requests]
    assert bodies == [with_nulls] * 3


MESSAGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"role": "User", "content": "a"}, {"role": "user", "content": "a"}),
    ({"role": "developer", "content": "a"}, {"role": "developer", "content": "a"}),
    ({"role": "system", "content": "a"}, {"role": "system", "content": "a"}),
    ({"role": "user"}, {"role": "user", "content": ""}),
    ({"role": "user", "content": None}, {"role": "user", "content": ""}),
    ({"role": "assistant", "content": ""}, {"role": "assistant", "content": ""}),
    ({"role": "assistant"}, {"role": "assistant", "content": ""}),
    ({"role": "assistant", "content": "a", "thinking": "t"},
     {"role": "assistant", "content": "a", "reasoning_content": "t"}),
    ({"role": "user", "content": "a", "unknown": [1], "done": True},
     {"role": "user", "content": "a"}),
    ({"role": "user", "content": "北\u0000\"\\\n😀"}, {"role": "user", "content": "北\u0000\"\\\n😀"}),
    ({"role": "user", "content": [{"type": "text", "text": "a"}]},
     {"role": "user", "content": [{"type": "text", "text": "a"}]}),
    ({"role": "tool", "content": [{"type": "text", "text": "a"}]},
     {"role": "tool", "content": [{"type": "text", "text": "a"}]}),
]


@pytest.mark.parametrize(("given", "made"), MESSAGES, ids=repr)
def test_messages(gateway: GatewayProcess, engine: RawEngine, given: dict[str, Any],
                  made: dict[str, Any]) -> None:
    """Any role, any lack of content: it is the engine's to refuse them."""
    messages = [given, *HI]
    assert asked(gateway, engine, messages=messages)["messages"] == [made, *HI]


def test_a_long_conversation_keeps_its_order(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Two hundred messages, none merged, dropped or moved."""
    messages = [{"role": ("user", "assistant")[i % 2], "content": str(i)} for i in range(201)]
    assert asked(gateway, engine, messages=messages)["messages"] == messages


def picture(kind: str, **how: Any) -> str:
    """A small image in this format, as base64."""
    out = io.BytesIO()
    Image.new("RGB", (3, 2), (200, 10, 30)).save(out, kind, **how)
    return base64.b64encode(out.getvalue()).decode()


PNG, JPEG, GIF, BMP = (picture(kind) for kind in ("PNG", "JPEG", "GIF", "BMP"))
KEPT = {
    "png": (PNG, "image/png"), "jpeg": (JPEG, "image/jpeg"), "gif": (GIF, "image/gif"),
    "bmp": (BMP, "image/bmp"), "unknown": (base64.b64encode(b"?" * 9).decode(), "image/jpeg"),
}


def url_of(body: dict[str, Any]) -> str:
    """The URL of the one image in the one message."""
    text, image = body["messages"][0]["content"]
    assert text == {"type": "text", "text": "what?"} and image["type"] == "image_url"
    return str(image["image_url"]["url"])


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,"], ids=["bare", "data_url"])
@pytest.mark.parametrize(("image", "kind"), KEPT.values(), ids=KEPT)
def test_images(gateway: GatewayProcess, engine: RawEngine, image: str, kind: str,
                prefix: str) -> None:
    """Bare base64, leniently a data URL; the type is what the bytes say."""
    message = {"role": "user", "content": "what?", "images": [prefix + image]}
    body = asked(gateway, engine, model=SEER, messages=[message])
    assert url_of(body) == f"data:{kind};base64,{image}"


def test_a_format_that_engines_cannot_read_becomes_png(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """With the same picture in it."""
    image = picture("WEBP", lossless=True)
    message = {"role": "user", "content": "what?", "images": [image]}
    url = url_of(asked(gateway, engine, model=SEER, messages=[message]))
    prefix, _, data = url.partition(",")
    assert prefix == "data:image/png;base64"
    made = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (made.format, made.size, made.getpixel((1, 1))[:3]) == ("PNG", (3, 2), (200, 10, 30))


def test_a_picture_alone_and_several(gateway: GatewayProcess, engine: RawEngine) -> None:
    """No empty text before them; their order stays."""
    message = {"role": "user", "content": "", "images": [PNG, JPEG]}
    [made] = asked(gateway, engine, model=SEER, messages=[message])["messages"]
    assert [part["image_url"]["url"].rpartition(",")[2] for part in made["content"]] == [PNG, JPEG]


@pytest.mark.parametrize(("image", "text"), [
    ("!!!!", "illegal base64 data at input byte 0"), ("AAA", "illegal base64 data at input byte"),
    ("AA*A", "illegal base64 data at input byte 2"), ("", "illegal base64 data at input byte 0"),
    ("_-_-", "illegal base64 data at input byte 0"), (5, ""), (None, ""), ({}, "")], ids=repr)
def test_a_broken_image_is_refused(
        gateway: GatewayProcess, engine: RawEngine, image: Any, text: str) -> None:
    """Before the engine is asked."""
    message = {"role": "user", "content": "what?", "images": [image]}
    answer = chat(gateway.url, model=SEER, messages=[message])
    assert answer.status == 400 and ollama_error(answer).startswith(text)
    assert engine.requests == []


def test_an_image_for_a_model_that_does_not_see(gateway: GatewayProcess, engine: RawEngine) -> None:
    """It is the engine that says so, by a 500: the client's fault nevertheless."""
    text = ("image input is not supported - hint: if this is unexpected, you may need to provide "
            "the mmproj")
    engine.answer_with(failing(500, text))
    answer = chat(gateway.url, messages=[{**HI[0], "images": [PNG]}])
    assert (answer.status, ollama_error(answer)) == (400, text)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.png", "https://x/y", "file:///etc/passwd"])
def test_no_engine_fetches_what_an_image_names(
        gateway: GatewayProcess, engine: RawEngine, url: str) -> None:
    """An address in place of a picture is refused, in either form of a message."""
    part = {"type": "image_url", "image_url": {"url": url}}
    for message in ({**HI[0], "images": [url]}, {"role": "user", "content": [part]}):
        answer = chat(gateway.url, model=SEER, messages=[message])
        assert answer.status == 400 and ollama_error(answer)
    assert engine.requests == []


def test_a_large_picture(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Twenty megabytes arrive as they are."""
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\x07" * 15_000_000).decode()
    message = {"role": "user", "content": "what?", "images": [image]}
    assert url_of(asked(gateway, engine, model=SEER, messages=[message])).endswith(image)


def test_nothing_of_the_clients_headers_reaches_the_engine(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Neither keys nor cookies, nor what would keep the engine at work after a hang-up."""
    headers = [*JSON, *[(name, "SECRET") for name in (
        "Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization",
        "X-Conversation-Id", "X-OpenWebUI-User-Name", "User-Agent")]]
    answer = fetch(gateway.url, "POST", CHAT, to_bytes(WORK[CHAT]), headers)
    assert success(answer)
    [request] = engine.requests
    assert not any("SECRET" in value for _, value in request.headers)
    assert request.all("Content-Length") == [str(len(request.body))]
    assert request.all("Content-Type") == ["application/json"]
    assert not request.all("Transfer-Encoding") and not request.all("Authorization")
