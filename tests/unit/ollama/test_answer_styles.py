"""Engines' other APIs, whole documents in place of streams, and models that repeat themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.api.ollama.answer import chat_lines, generate_lines, whole
from app.api.ollama.refusal import Refusal
from app.errors import GatewayError
from tests.fakes.stream_steps import DONE, data
from tests.unit.ollama.answering import HEAD, METRICS, answer, chat, done, generate, said


def text(content: Any, finish: str | None = None, **more: Any) -> bytes:
    """One event of /v1/completions."""
    choice = {"index": 0, "text": content, "finish_reason": finish, "logprobs": None}
    return data({"object": "text_completion", "choices": [choice], **more})


def completion(content: Any, stop_type: str | None = None, **more: Any) -> bytes:
    """One event of llama-server's /completion, the last one where there is a `stop_type`."""
    ending = {"stop": True, "stop_type": stop_type} if stop_type else {"stop": False}
    return data({"index": 0, "content": content, "tokens": [], "id_slot": 0, **ending, **more})


def response(content: str) -> dict[str, Any]:
    """A line of /api/generate that is not the last."""
    return {**HEAD, "response": content, "done": False}


def last(reason: str = "stop", **metrics: int) -> dict[str, Any]:
    """The last line of /api/generate."""
    return {**HEAD, "response": "", "done": True, "done_reason": reason, **METRICS, **metrics}


# Nothing was timed but the end, at 105 s.
WORDLESS = {"total_duration": 5 * 10**9, "eval_duration": 1}
TEXT: dict[str, tuple[list[bytes], list[Any]]] = {
    "stop": ([text("a"), text("b"), text("", "stop"), DONE],
             [response("a"), response("b"), last(eval_count=2)]),
    "length": ([text("a", "length"), DONE], [response("a"), last("length")]),
    "usage": ([text("a"), text("", "stop"),
               data({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 9}}), DONE],
              [response("a"), last(prompt_eval_count=4, eval_count=9)]),
    "empty": ([text(""), text(None), text(5), data({"choices": []}), DONE], [last(**WORDLESS)]),
}
COMPLETION: dict[str, tuple[list[bytes], list[Any]]] = {
    "eos": ([completion("a"), completion("", "eos")], [response("a"), last()]),
    "word": ([completion("a"), completion("", "word")], [response("a"), last()]),
    "none": ([completion("a"), completion("", "none")], [response("a"), last()]),
    "limit": ([completion("a"), completion("", "limit")], [response("a"), last("length")]),
    "no_type": ([completion("a"), data({"content": "", "stop": True})], [response("a"), last()]),
    "last_text": ([completion("a", "limit")], [response("a"), last("length")]),
    "counts": ([completion("a", tokens_predicted=1, tokens_evaluated=5),
                completion("", "eos", tokens_predicted=7, tokens_evaluated=5)],
               [response("a"), last(prompt_eval_count=5, eval_count=7)]),
    "silent": ([completion(""), completion(None), data({"prompt_progress": {}}),
                completion("", "eos")], [last(**WORDLESS)]),
    "more_behind_stop": ([completion("", "eos"), completion("x")], [last(**WORDLESS)]),
    "rubbish_behind_stop": ([completion("", "eos"), b"data: {\n\n"], [last(**WORDLESS)]),
    "cut": ([completion("a")],
            [response("a"), {"error": "the engine ended its answer before it was complete"}]),
}
# What a document took is all counted as answering: 105 s minus 102 s.
WHOLE = {"prompt_eval_duration": 1, "eval_duration": 3 * 10**9, "total_duration": 5 * 10**9}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
CALLED = {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}
MESSAGES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "content": ({"role": "assistant", "content": "a"}, [said("a"), done(**WHOLE)]),
    "thinking": ({"content": "a", "reasoning_content": "t"},
                 [said("a", thinking="t"), done(**WHOLE)]),
    "empty": ({"content": ""}, [done(**WHOLE)]),
    "null": ({"content": None}, [done(**WHOLE)]),
    "call": ({"content": None, "tool_calls": [CALL]},
             [said("", tool_calls=[CALLED]), done(**WHOLE)]),
    "older_call": ({"content": None, "function_call": CALL["function"]},
                   [said("", tool_calls=[{"function": CALLED["function"]}]), done(**WHOLE)]),
}
NO_ANSWER = "the engine sent a JSON document that is no answer"


@pytest.mark.parametrize(("pieces", "lines"), TEXT.values(), ids=TEXT)
def test_text_completion(pieces: list[bytes], lines: list[Any]) -> None:
    """/v1/completions is told as any other answer."""
    assert generate(*pieces, style="text") == lines


@pytest.mark.parametrize(("pieces", "lines"), COMPLETION.values(), ids=COMPLETION)
def test_completion_of_llama_server(pieces: list[bytes], lines: list[Any]) -> None:
    """Without ``[DONE]`` it is the event with ``stop`` that ends it."""
    assert generate(*pieces, style="completion") == lines


@pytest.mark.parametrize(("message", "lines"), MESSAGES.values(), ids=MESSAGES)
def test_chat_document(message: dict[str, Any], lines: list[Any]) -> None:
    """An engine that does not stream gives the same lines, all at once."""
    document = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    raw = json.dumps(document).encode()
    assert chat(raw[:9], raw[9:], stream_type=False) == lines


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_document_has_reason_and_counts(reason: str) -> None:
    """What a stream says at its end is in the document."""
    choice = {"message": {"content": "a"}, "finish_reason": reason}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    raw = json.dumps({"choices": [choice], "usage": usage}).encode()
    ended = done(reason, prompt_eval_count=3, eval_count=2, **WHOLE)
    assert chat(raw, stream_type=False) == [said("a"), ended]


def test_text_document() -> None:
    """/v1/completions without a stream."""
    raw = json.dumps({"choices": [{"text": "a", "finish_reason": "length"}]}).encode()
    assert generate(raw, style="text", stream_type=False) == [
        response("a"), last("length", **WHOLE)
    ]


def test_completion_document() -> None:
    """/completion without a stream."""
    document = {"content": "a", "stop": True, "stop_type": "limit",
                "timings": {"prompt_n": 1, "cache_n": 2, "prompt_ms": 5, "predicted_n": 4,
                            "predicted_ms": 2.5}}
    raw = json.dumps(document).encode()
    assert generate(raw, style="completion", stream_type=False) == [response("a"), last(
        "length", prompt_eval_count=3, prompt_eval_duration=5_000_000, eval_count=4,
        eval_duration=2_500_000, total_duration=WHOLE["total_duration"],
    )]


@pytest.mark.parametrize(("raw", "words"), [
    (b"", "the engine sent an answer that is not JSON"),
    (b"<html></html>", "the engine sent an answer that is not JSON"),
    (b'{"choices":[', "the engine sent an answer that is not JSON"),
    (b"[]", "the engine sent an answer that is no JSON object"),
    (b"{}", NO_ANSWER), (b'{"choices":[]}', NO_ANSWER), (b'{"choices":null}', NO_ANSWER),
    (b'{"choices":"x","content":null}', NO_ANSWER), (b'{"status":"ok"}', NO_ANSWER),
    (b'{"error":{"message":"boom"}}', "boom"), (b'{"error":"boom"}', "boom"),
])
def test_document_that_is_no_answer_is_raised(raw: bytes, words: str) -> None:
    """Nothing has been sent when a document turns out to be none."""
    with pytest.raises(GatewayError) as caught:
        next(chat_lines([raw], answer(stream_type=False)))
    assert caught.value.message == words


def test_document_that_refuses_is_raised() -> None:
    """An engine's refusal in a document keeps its status."""
    with pytest.raises(Refusal, match="^too long$") as caught:
        next(generate_lines([b'{"error":{"code":400,"message":"too long"}}'],
                            answer(stream_type=False)))
    assert caught.value.status == 400


@pytest.mark.parametrize("style", ["text", "completion"])
@pytest.mark.parametrize("spellings", [["x"], [" x", "x ", "\nx"], [" ", "\n"]],
                         ids=["same", "spaced", "blank"])
def test_token_that_repeats_ends_the_answer(style: str, spellings: list[str]) -> None:
    """After the token and thirty repetitions the next one is the end, and no more is read."""
    make = text if style == "text" else completion
    taken: list[int] = []

    def pieces() -> Any:
        for i in range(1000):
            taken.append(i)
            yield make(spellings[i % len(spellings)])

    lines = list(generate_lines(pieces(), answer(style=style)))
    assert [line["response"] for line in lines[:-1]] == [
        spellings[i % len(spellings)] for i in range(31)
    ]
    assert lines[-1] == last("length", eval_count=31)
    assert len(taken) == 32


def test_repetition_counts_in_a_row_only() -> None:
    """Another token in between begins the count anew; events without text do not."""
    events = ([text("x")] * 31 + [text("y")]) * 3
    assert len(generate(*events, text("", "stop"), style="text")) == 97
    quiet = [event for _ in range(32) for event in (text("x"), text(""))]
    assert generate(*quiet, style="text")[-1]["done_reason"] == "length"


def test_chat_may_repeat_itself() -> None:
    """Only raw answers are watched, as in Ollama."""
    event = data({"choices": [{"delta": {"content": "x"}}]})
    assert len(chat(*[event] * 100, DONE)) == 101


def test_whole_of_an_answer_that_repeats_itself() -> None:
    """Without a stream it ends the same way."""
    one = whole(generate_lines([completion("x")] * 100, answer(style="completion")))
    assert (one["response"], one["done_reason"]) == ("x" * 31, "length")
