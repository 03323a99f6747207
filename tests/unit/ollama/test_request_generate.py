"""A generate request: a chat of one question, or a prompt as it is, for which engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.api.ollama.request import generate, options
from app.api.ollama.request.ask import CHAT, COMPLETION, TEXT, Ask, Lookup
from app.engine_facts import EngineFacts
from tests.unit.ollama.request_cases import JPEG, LLAMA, OTHER, PNG, WAV, refusal

SAMPLING = options.engine_fields({}, LLAMA)
ENDING = {"stream": True, "cache_prompt": True}
COUNTED = {"stream": True, "stream_options": {"include_usage": True}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def ask(facts: EngineFacts = LLAMA, thinking: bool = False, **fields: Any) -> Ask:
    """The ask for the prompt `p`."""
    return generate.ask({"model": "m:1b", "prompt": "p", **fields}, facts, thinking)


def completion(**fields: Any) -> Ask:
    """The ask of llama-server's /completion with these fields beside the usual ones."""
    return Ask("/completion", {**SAMPLING, **ENDING, **fields}, COMPLETION)


@pytest.mark.parametrize(("fields", "messages"), [
    ({}, [{"role": "user", "content": "p"}]),
    ({"system": "", "template": "", "suffix": "", "context": [], "images": [], "raw": False},
     [{"role": "user", "content": "p"}]),
    ({"system": "s"}, [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}]),
    ({"messages": "ignored", "tools": [5]}, [{"role": "user", "content": "p"}]),
    ({"images": [PNG]}, [{"role": "user", "content": [
        {"type": "text", "text": "p"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]}]),
    ({"images": [WAV]}, [{"role": "user", "content": [
        {"type": "text", "text": "p"},
        {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}]}]),
], ids=repr)
def test_a_plain_prompt_is_a_chat(fields: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    """With the system text before it and the images in it; there are no tools."""
    sent = ask(**fields)
    assert (sent.target, sent.style, sent.lookups) == ("/v1/chat/completions", CHAT, ())
    assert sent.body == {**SAMPLING, **COUNTED, "cache_prompt": True, "messages": messages}


def test_a_plain_prompt_takes_what_a_chat_takes() -> None:
    """Format, thinking, probabilities and options."""
    body = ask(OTHER, True, format="json", think="low", logprobs=True, options={"seed": 1}).body
    assert body == {**COUNTED, "messages": [{"role": "user", "content": "p"}], "seed": 1,
                    "response_format": {"type": "json_object"}, "reasoning_effort": "low",
                    "logprobs": True, "top_logprobs": 1}


def test_a_raw_prompt_goes_as_it_is() -> None:
    """To llama-server's own endpoint, nothing added."""
    prompt = "<|im_start|>user\n {{ .System }} [img-0]"
    assert ask(raw=True, prompt=prompt) == completion(prompt=prompt)


def test_a_raw_prompt_for_another_engine() -> None:
    """To the endpoint that every engine has."""
    sent = ask(OTHER, raw=True, options={"num_predict": 3, "top_k": 1}, format=SCHEMA,
               logprobs=True, top_logprobs=2)
    schema = {"name": "schema", "schema": SCHEMA}
    assert sent == Ask("/v1/completions", {
        "prompt": "p", "max_tokens": 3, "logprobs": 2, **COUNTED,
        "response_format": {"type": "json_schema", "json_schema": schema}}, TEXT)


OPENING = replace(LLAMA, bos_token="<s>")


@pytest.mark.parametrize(("fields", "rest"), [
    ({"raw": True, "prompt": "<s>a<s>"}, "a<s>"), ({"raw": True, "prompt": "<s>"}, ""),
    ({"raw": True, "prompt": "<s><s>a"}, "<s>a"), ({"template": "<s>{{ .Prompt }}"}, "p"),
    ({"raw": True, "prompt": "<s>[img-0]a", "images": [PNG]},
     {"prompt_string": "<m>a", "multimodal_data": [PNG]}),
], ids=repr)
def test_a_prompt_that_opens_as_the_engine_does(fields: dict[str, Any], rest: Any) -> None:
    """It is known which text is too much where the engine puts one there too."""
    sent = ask(OPENING, **fields)
    assert sent.opening == "<s>" and sent.unopened() == completion(prompt=rest)
    prompt = sent.body["prompt"]
    text = prompt if isinstance(prompt, str) else prompt["prompt_string"]
    assert text.startswith("<s>")


@pytest.mark.parametrize("fields", [
    {"raw": True}, {"raw": True, "prompt": " <s>"}, {"raw": True, "prompt": "<S>"},
    {"prompt": "<s>"}, {"prompt": "<s>", "suffix": "x"}, {"prompt": "<s>", "context": [1]},
    {"template": "<s>", "context": [1]}, {"template": "<s>[img-0]", "images": [PNG], "context": [1]}
], ids=repr)
def test_a_prompt_that_opens_otherwise(fields: dict[str, Any]) -> None:
    """Is left alone: the engine puts nothing there, or nothing else is."""
    assert ask(OPENING, **fields).opening == ""


def test_another_engine_opens_as_it_likes() -> None:
    """Its token is not known."""
    assert ask(OTHER, raw=True, prompt="<s>a").body["prompt"] == "<s>a"


@pytest.mark.parametrize(("fields", "sent"), [
    ({"format": "json"}, {"json_schema": {"type": "object"}}),
    ({"format": SCHEMA}, {"json_schema": SCHEMA}),
    ({"format": ""}, {}),
    ({"options": {"format": "json"}}, {"json_schema": {"type": "object"}}),
    ({"logprobs": True}, {"n_probs": 1}),
    ({"logprobs": True, "top_logprobs": 7}, {"n_probs": 7}),
    ({"options": {"temperature": 0, "stop": "x"}}, {"temperature": 0.0, "stop": ["x"]}),
    ({"think": False}, {}),
], ids=repr)
def test_fields_of_a_raw_prompt(fields: dict[str, Any], sent: dict[str, Any]) -> None:
    """They have other names than in a chat."""
    assert replace(ask(raw=True, **fields), trials=()) == completion(prompt="p", **sent)


MARKED: list[tuple[str, list[str], str, list[str]]] = [
    ("a", [PNG], "<m>a", [PNG]),
    ("a", [PNG, JPEG], "<m><m>a", [PNG, JPEG]),
    ("a[img-0]b", [PNG], "a<m>b", [PNG]),
    ("a[img-1]b[img-0]", [PNG, JPEG], "a<m>b<m>", [JPEG, PNG]),
    ("a[img-1]b", [PNG, JPEG], "<m>a<m>b", [PNG, JPEG]),
    ("[img-0][img-0][img-7]", [PNG], "<m>[img-0][img-7]", [PNG]),
    ("a", [f"data:image/png;base64,{PNG}"], "<m>a", [PNG]),
]


@pytest.mark.parametrize(("prompt", "images", "text", "data"), MARKED)
def test_images_of_a_raw_prompt(
        prompt: str, images: list[str], text: str, data: list[str]) -> None:
    """Ollama's tags become the engine's markers, in front where one lacks; data in that order."""
    sent = ask(raw=True, prompt=prompt, images=images)
    assert sent == completion(prompt={"prompt_string": text, "multimodal_data": data})


def test_an_engine_that_does_not_tell_its_marker() -> None:
    """Older ones all have the same."""
    sent = ask(replace(LLAMA, media_marker=""), raw=True, images=[PNG])
    assert sent.body["prompt"]["prompt_string"] == "<__media__>p"


@pytest.mark.parametrize("raw", [{}, {"raw": True}, {"system": "s", "context": [1]}], ids=repr)
def test_a_suffix_is_filled_in(raw: dict[str, Any]) -> None:
    """The engine knows the model's own tokens for that."""
    body = {**SAMPLING, **ENDING, "input_prefix": "p", "input_suffix": "s"}
    assert ask(suffix="s", **raw) == Ask("/infill", body, COMPLETION)
    assert ask(OTHER, suffix="s", **raw) == Ask(
        "/v1/completions", {"prompt": "p", "suffix": "s", **COUNTED}, TEXT)


TEMPLATE = "{{ if .System }}[{{ .System }}]{{ end }}<{{ .Prompt }}>{{ .Response }}</>"


@pytest.mark.parametrize(("fields", "prompt"), [
    ({}, "<p>"),
    ({"system": "s"}, "[s]<p>"),
    ({"context": [3, 4]}, ["", 3, 4, "<p>"]),
    ({"images": [PNG]}, {"prompt_string": "<<m>p>", "multimodal_data": [PNG]}),
    ({"prompt": "a [img-0]", "images": [PNG]},
     {"prompt_string": "<a <m>>", "multimodal_data": [PNG]}),
    ({"template": "{{ .Prompt }}|{{ .Suffix }}|{{ .Response }}|", "suffix": "x", "system": "s"},
     "p|x||"),
    ({"template": "{{ if .System }}{{ .System }}{{ end }}{{ .Prompt }}", "suffix": "x",
      "system": "s"}, "p"),
], ids=repr)
def test_a_template_makes_the_prompt(fields: dict[str, Any], prompt: Any) -> None:
    """The engine's own template is not used then."""
    assert ask(**{"template": TEMPLATE, **fields}) == completion(prompt=prompt)


def test_a_template_for_another_engine() -> None:
    """Token ids mean nothing to it."""
    sent = ask(OTHER, template=TEMPLATE, system="s", context=[3, 4])
    assert sent == Ask("/v1/completions", {"prompt": "[s]<p>", **COUNTED}, TEXT)


def test_a_template_with_context_and_images() -> None:
    """The token ids become text first."""
    sent = ask(template=TEMPLATE, context=[3, 4], images=[PNG])
    assert sent.lookups == (Lookup("/detokenize", {"tokens": [3, 4]}, "content"),)
    assert sent.completed(["before "]) == completion(
        prompt={"prompt_string": "before <<m>p>", "multimodal_data": [PNG]})


def test_context_comes_before_the_chat() -> None:
    """The engine's template makes the text; the token ids are sent as they are."""
    sent = ask(LLAMA, True, context=[3, 5], system="s", think=False)
    chat = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}],
            "chat_template_kwargs": {"enable_thinking": False}}
    assert sent.lookups == (Lookup("/apply-template", chat, "prompt"),)
    assert sent.completed(["<p>"]) == completion(prompt=["", 3, 5, "<p>"])
    assert sent.body["prompt"] == ["", 3, 5]


def test_context_with_images() -> None:
    """The prompt is one text then, with a marker in the question."""
    sent = ask(context=[3], images=[PNG])
    chat = {"messages": [{"role": "user", "content": "<m>p"}]}
    assert sent.lookups == (Lookup("/detokenize", {"tokens": [3]}, "content"),
                            Lookup("/apply-template", chat, "prompt"))
    assert sent.completed(["before", "<<m>p>"]) == completion(
        prompt={"prompt_string": "before<<m>p>", "multimodal_data": [PNG]})


def test_context_means_nothing_to_another_engine() -> None:
    """It is a chat without it."""
    assert ask(OTHER, context=[3]) == ask(OTHER)


RAW = "raw mode does not support template, system, or context"
NO_PICTURES = "image generation models are not currently supported"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"raw": True, "template": "t"}, RAW),
    ({"raw": True, "system": "s"}, RAW),
    ({"raw": True, "context": [1]}, RAW),
    ({"raw": True, "suffix": "x", "system": "s"}, RAW),
    ({"width": 512}, NO_PICTURES),
    ({"height": 512}, NO_PICTURES),
    ({"steps": 4}, NO_PICTURES),
    ({"suffix": "s", "images": [PNG]}, "images do not go together with suffix"),
    ({"prompt": 5}, "prompt must be a text"),
    ({"prompt": ["p"]}, "prompt must be a text"),
    ({"system": {}}, "system must be a text"),
    ({"suffix": 1}, "suffix must be a text"),
    ({"template": []}, "template must be a text"),
    ({"raw": "yes"}, "raw must be true or false"),
    ({"context": "1"}, "context must be a list"),
    ({"context": ["1"]}, "context must be a list of token ids"),
    ({"context": [1.0]}, "context must be a list of token ids"),
    ({"context": [True]}, "context must be a list of token ids"),
    ({"context": [-1]}, "context must be a list of token ids"),
    ({"context": [2**31]}, "context must be a list of token ids"),
    ({"images": PNG}, "images must be a list"),
    ({"raw": True, "images": PNG}, "images must be a list"),
    ({"images": ["?"]}, "illegal base64 data at input byte 0"),
    ({"options": 5}, "options must be an object"),
    ({"raw": True, "options": 5}, "options must be an object"),
    ({"raw": True, "logprobs": "yes"}, "logprobs must be true or false"),
    ({"think": True}, '"m:1b" does not support thinking'),
    ({"raw": True, "think": "high"}, '"m:1b" does not support thinking'),
    ({"template": "{{ if .System }}"}, "template: unexpected EOF, an {{ if }} has no {{ end }}"),
]


@pytest.mark.parametrize(("fields", "text"), WRONG, ids=repr)
def test_a_wrong_request_is_refused(fields: dict[str, Any], text: str) -> None:
    """In Ollama's words where it has some, else with the name of the field."""
    assert refusal(lambda: ask(**fields)) == text


@pytest.mark.parametrize("fields", [{"raw": True}, {"template": "{{ .Prompt }}"}], ids=repr)
def test_images_need_an_engine_that_takes_them(fields: dict[str, Any]) -> None:
    """/v1/completions has no place for them."""
    assert refusal(lambda: ask(OTHER, images=[PNG], **fields)) == (
        "images do not go together with raw or template on this engine")


def test_zero_sizes_are_no_picture() -> None:
    """Zero is what a client sends that does not mean it."""
    assert ask(width=0, height=0, steps=0) == ask()
