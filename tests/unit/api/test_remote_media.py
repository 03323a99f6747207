"""Media that a body only points at: found wherever an engine would read them, and nowhere else."""

from __future__ import annotations

import time
from typing import Any

import pytest

from app.api.remote_media import is_remote, refuse_remote_media, remote_media
from app.errors import GatewayError, Kind

URL = "http://10.0.0.1/secret.png"
DATA = "data:image/png;base64,iVBORw0KGgo="


def chat(*parts: Any) -> dict[str, Any]:
    """A chat with these content parts in its second message."""
    return {"model": "m", "messages": [
        {"role": "system", "content": "hi"}, {"role": "user", "content": list(parts)}]}


def image(url: Any) -> dict[str, Any]:
    """A picture, as OpenAI's chat has it."""
    return {"type": "image_url", "image_url": {"url": url}}


def source(**fields: Any) -> dict[str, Any]:
    """A picture, as Anthropic has it."""
    return {"type": "image", "source": fields}


PARTS = "messages[1].content[0]"
REFUSED: list[tuple[dict[str, Any], str]] = [
    (chat(image(URL)), f"{PARTS}.image_url.url"),
    (chat({"type": "text", "text": "x"}, image(DATA), image(URL)),
     "messages[1].content[2].image_url.url"),
    (chat({"type": "image_url", "image_url": URL}), f"{PARTS}.image_url"),
    (chat({"image_url": {"url": URL}}), f"{PARTS}.image_url.url"),
    (chat({"type": "audio_url", "audio_url": {"url": URL}}), f"{PARTS}.audio_url.url"),
    (chat({"type": "video_url", "video_url": {"url": URL}}), f"{PARTS}.video_url.url"),
    (chat({"type": "input_audio", "input_audio": {"data": URL, "format": "wav"}}),
     f"{PARTS}.input_audio.data"),
    (chat({"type": "input_audio", "input_audio": {"url": URL}}), f"{PARTS}.input_audio.url"),
    (chat({"type": "input_video", "input_video": URL}), f"{PARTS}.input_video"),
    (chat({"type": "file", "file": {"file_data": URL}}), f"{PARTS}.file.file_data"),
    (chat({"type": "image", "url": URL}), f"{PARTS}.url"),
    (chat({"type": "image", "image": URL}), f"{PARTS}.image"),
    ({"messages": [{"role": "user", "content": image(URL)}]}, "messages[0].content.image_url.url"),
    (chat(source(type="url", url=URL)), f"{PARTS}.source.url"),
    (chat({"type": "document", "source": {"type": "url", "url": URL}}), f"{PARTS}.source.url"),
    (chat({"type": "tool_result", "content": [source(type="url", url=URL)]}),
     f"{PARTS}.content[0].source.url"),
    (chat({"type": "document", "source": {"type": "content", "content": [
        source(type="url", url=URL)]}}), f"{PARTS}.source.content[0].source.url"),
    ({"system": [source(type="url", url=URL)]}, "system[0].source.url"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL}]}]},
     "input[0].content[0].image_url"),
    ({"input": [{"type": "input_image", "image_url": URL}]}, "input[0].image_url"),
    ({"input": [{"type": "input_file", "file_url": URL}]}, "input[0].file_url"),
    ({"input": [{"type": "function_call_output", "output": [
        {"type": "input_image", "image_url": URL}]}]}, "input[0].output[0].image_url"),
    ({"input": [{"type": "computer_call_output", "output": {
        "type": "computer_screenshot", "image_url": URL}}]}, "input[0].output.image_url"),
    ({"input": [{"image": URL}]}, "input[0].image"),
    ({"documents": {"content": [image(URL)]}}, "documents.content[0].image_url.url"),
    ({"prompt": {"prompt_string": "x", "multimodal_data": [DATA, URL]}},
     "prompt.multimodal_data[1]"),
    ({"image": URL}, "image"), ({"images": [{"image_url": URL}]}, "images[0].image_url"),
    ({"images": ["AAAA", URL]}, "images[1]"),
]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {"image_url": {"type": "string", "default": URL}}}}}
PASSED: list[dict[str, Any]] = [
    {}, {"model": "m"}, {"messages": None}, {"messages": "x"}, {"messages": [None, 5, "x", [[]]]},
    chat(image(DATA)), chat({"type": "image_url", "image_url": DATA}), chat(image("/9j/4AAQSk")),
    chat(image(None), image(5), image([URL]), image({"url": URL})),
    chat({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
    chat(source(type="base64", media_type="image/png", data="iVBORw0KGgo=")),
    # Text that speaks of an address is no address.
    chat({"type": "text", "text": URL}), {"prompt": URL}, {"input": [URL, URL]},
    {"messages": [{"role": "user", "content": f"look at {URL}"}]},
    {"messages": [{"role": "user", "content": URL}]},
    chat({"type": "document", "source": {"type": "text", "data": "Subject: hello"}}),
    # A tool's own words, of which the engine fetches none.
    {**chat(), "tools": [TOOL]}, {"tools": [{"type": "mcp", "server_url": URL}]},
    {"messages": [{"role": "assistant", "tool_calls": [
        {"function": {"name": "f", "arguments": f'{{"image_url":"{URL}"}}'}}]}]},
    chat({"type": "tool_use", "id": "1", "name": "f", "input": {"image_url": URL, "url": URL}}),
    {"metadata": {"image_url": URL, "url": URL}}, {"user": URL}, {"url": URL},
    # Results of a search, whose pages are only named.
    chat({"type": "search_result", "source": URL, "title": "x", "content": []}),
    chat({"type": "web_search_tool_result", "content": [
        {"type": "web_search_result", "url": URL, "title": "x"}]}),
    {"input": [{"content": [{"type": "output_text", "text": "x", "annotations": [
        {"type": "url_citation", "url": URL}]}]}]},
    {"input": [{"type": "web_search_call", "action": {"type": "open_page", "url": URL}}]},
    {"documents": [{"url": URL, "text": "x"}, URL]},
]


@pytest.mark.parametrize(("fields", "path"), REFUSED, ids=[path for _, path in REFUSED])
def test_media_elsewhere_are_refused(fields: dict[str, Any], path: str) -> None:
    """With the path of the URL and the setting that allows it, and without the URL."""
    with pytest.raises(GatewayError, match="server.allow-remote-media: true") as raised:
        refuse_remote_media(fields)
    assert (raised.value.kind, raised.value.param) == (Kind.INVALID_FIELD, path)
    assert f"'{path}'" in raised.value.message and URL not in raised.value.message


@pytest.mark.parametrize("fields", PASSED, ids=lambda fields: str(fields)[:60])
def test_all_else_passes(fields: dict[str, Any]) -> None:
    """Media that are there, and addresses that nobody fetches."""
    refuse_remote_media(fields)


@pytest.mark.parametrize("other", PASSED, ids=lambda fields: str(fields)[:60])
def test_what_passes_hides_nothing(other: dict[str, Any]) -> None:
    """A URL is found whatever else the body holds."""
    for fields, _ in REFUSED:
        with pytest.raises(GatewayError):
            refuse_remote_media({**other, **fields})


@pytest.mark.parametrize("url", [
    "http://a", "https://a", "HTTP://a", "file:///etc/passwd", "File:/etc/passwd", "ftp://a",
    "s3://a/b", "gs://a", "blob:x", "C:\\x.png", " http://a", "\x00\x1fhttp://a", "ht\ntp://a",
    "\thttp:\n//a", "x-data:a", "dataa:b", "\t \n" * 999 + "http://a"])
def test_a_url_is_remote_however_it_is_written(url: str) -> None:
    """As lenient readers take it: spaces before it, line ends in it."""
    assert is_remote(url)


@pytest.mark.parametrize("value", [
    DATA, "DATA:image/png;base64,x", " data:,x", "data:", "", "/9j/4AAQ", "iVBORw0KGgo=", "x y: z",
    "//a/b", "1:2", ":", None, 5, [], {}, True, b"http://a"])
def test_what_is_there_is_not_remote(value: Any) -> None:
    """data: URLs, bare base64, and what is no URL."""
    assert not is_remote(value)


def test_long_bodies_take_no_longer() -> None:
    """How long a text or a picture is does not matter; how many there are hardly does."""
    fields = {**chat(*[image(DATA + "A" * 10_000_000)] * 2), "input": list(range(300_000))}
    fields["messages"] += [{"role": "user", "content": "x" * 1000}] * 5000
    started = time.process_time()
    refuse_remote_media(fields)
    assert time.process_time() - started < 2


def test_deep_bodies_are_no_trouble() -> None:
    """As deep as JSON may be."""
    node: Any = image(URL)
    for _ in range(250):
        node = {"content": [node]}
    assert remote_media({"messages": [node]}) is not None
