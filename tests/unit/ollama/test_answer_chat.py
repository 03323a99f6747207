"""Lines of /api/chat: one for each event that says something, at once, in Ollama's shape."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from app import jsontext
from app.api.ollama.answer import Answer, chat_lines
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev
from tests.unit.ollama.answering import answer, chat, done, said

USAGE = data({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
SILENT: dict[str, bytes] = {
    "no_choices": data({"id": "c"}),
    "empty_choices": data({"choices": []}),
    "choices_null": data({"choices": None}),
    "choices_no_list": data({"choices": {"0": {}}}),
    "choice_null": data({"choices": [None]}),
    "no_delta": data({"choices": [{"index": 0}]}),
    "delta_null": data({"choices": [{"index": 0, "delta": None}]}),
    "delta_text": data({"choices": [{"index": 0, "delta": "x"}]}),
    "empty_delta": chunk({}),
    "role": chunk({"role": "assistant", "content": None}),
    "content_null": chunk({"content": None}),
    "content_empty": chunk({"content": ""}),
    "content_number": chunk({"content": 5}),
    "content_list": chunk({"content": ["x"]}),
    "thinking_null": chunk({"reasoning_content": None, "reasoning": ""}),
    "no_calls": chunk({"tool_calls": []}),
    "calls_null": chunk({"tool_calls": None}),
    "other_choice": chunk({"content": "x"}, index=1),
    "other_choice_ends": chunk({}, "length", index=1),
    "empty_finish": chunk({}, ""),
    "odd_finish": data({"choices": [{"index": 0, "delta": {}, "finish_reason": 5}]}),
    "progress": data({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}],
                      "prompt_progress": {"total": 9, "processed": 3}}),
    "empty_object": data({}),
    "error_null": data({"choices": [], "error": None}),
    "comment": b": ping\n\n",
    "empty_event": b"data:\n\n",
    "other_fields": b"event: message\nid: 7\nretry: 10\n\n",
}
SPOKEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "content": ({"content": "a"}, said("a")),
    "space": ({"content": " "}, said(" ")),
    "emoji": ({"content": "北😀"}, said("北😀")),
    "controls": ({"content": "\0\n\"\\\u2028"}, said("\0\n\"\\\u2028")),
    "thinking": ({"reasoning_content": "t"}, said("", thinking="t")),
    "newer_word_for_thinking": ({"reasoning": "t"}, said("", thinking="t")),
    "both_words": ({"reasoning_content": "t", "reasoning": "t"}, said("", thinking="t")),
    "both": ({"content": "a", "reasoning_content": "t"}, said("a", thinking="t")),
    "tags_are_text": ({"content": "<think>a</think>"}, said("<think>a</think>")),
    "role_too": ({"role": "assistant", "content": "a"}, said("a")),
}
REASONS = {
    "stop": "stop", "tool_calls": "stop", "content_filter": "stop", "function_call": "stop",
    "length": "length", "eos": "stop",
}


@pytest.mark.parametrize("event", SILENT.values(), ids=SILENT)
def test_event_that_says_nothing_gives_no_line(event: bytes) -> None:
    """Clients never get an empty line, and what follows is not lost."""
    assert chat(event, ev("a"), event, STOP, event, DONE) == [said("a"), done()]


@pytest.mark.parametrize(("delta", "line"), SPOKEN.values(), ids=SPOKEN)
def test_event_that_says_something_gives_one_line(
    delta: dict[str, Any], line: dict[str, Any]
) -> None:
    """Content and thinking keep every character."""
    assert chat(chunk(delta), STOP, DONE) == [line, done()]


@pytest.mark.parametrize(("word", "reason"), REASONS.items())
def test_reason_of_the_end(word: str, reason: str) -> None:
    """Ollama knows two reasons; tool calls end with "stop" too."""
    assert chat(ev("a"), chunk({}, word), DONE) == [said("a"), done(reason)]


def test_text_in_the_last_event_is_not_lost() -> None:
    """An engine may say its last word and its reason in one event."""
    assert chat(chunk({"content": "a"}, "length"), DONE) == [said("a"), done("length")]


def test_first_reason_counts() -> None:
    """What an engine says behind its own end does not change why it ended."""
    lines = chat(ev("a"), chunk({}, "length"), chunk({}, "stop"), DONE)
    assert lines == [said("a"), done("length")]


def test_choice_without_index_is_the_first() -> None:
    """There are engines that do not number what is alone."""
    event = data({"choices": [{"delta": {"content": "a"}}]})
    assert chat(event, STOP, DONE) == [said("a"), done()]


def test_first_choice_is_found_behind_others() -> None:
    """Of several choices in one event the one with index 0 counts."""
    others = [{"index": i, "delta": {"content": str(i)}} for i in (2, 1, 0)]
    assert chat(data({"choices": others}), STOP, DONE) == [said("0"), done()]


def test_usage_behind_the_end() -> None:
    """Counts come in an event of their own without choices, and get onto the one last line."""
    assert chat(data({"choices": []}), ev("a"), STOP, USAGE, DONE) == [
        said("a"), done(prompt_eval_count=3, eval_count=2)
    ]


def test_each_line_comes_with_its_event() -> None:
    """A line is there before the next event is asked for, and the end before the reply's end."""
    taken: list[int] = []

    def pieces() -> Any:
        for i, piece in enumerate([ev("a"), ev("b"), STOP, DONE, b"never"]):
            taken.append(i)
            yield piece

    seen = [(line["message"]["content"], len(taken)) for line in chat_lines(pieces(), answer())]
    assert seen == [("a", 1), ("b", 2), ("", 4)]


def test_several_events_of_one_piece() -> None:
    """How the network groups events makes no difference."""
    assert chat(ev("a") + ev("b") + STOP + DONE) == [
        said("a"), said("b"), done(eval_count=2)
    ]


def test_character_cut_in_two() -> None:
    """A cut within a character leaves no trace."""
    body = ev("北😀") + STOP + DONE
    place = body.index("北".encode())
    for cut in (place + 1, place + 2, place + 4, place + 6):
        assert chat(body[:cut], body[cut:]) == [said("北😀"), done()]


def test_fields_stand_in_the_order_of_ollama() -> None:
    """Order of the line, of its message and of the last line."""
    logprobs = {"content": [{"token": "a", "logprob": -1.0}]}
    event = data({"choices": [{"index": 0, "delta": {"reasoning": "t", "content": "a"},
                               "logprobs": logprobs}]})
    line, last = chat(event, STOP, DONE)
    assert list(line) == ["model", "created_at", "message", "done", "logprobs"]
    assert list(line["message"]) == ["role", "content", "thinking"]
    assert list(last) == [
        "model", "created_at", "message", "done", "done_reason",
        "total_duration", "load_duration",
        "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration",
    ]


@pytest.mark.parametrize("model", ["Foo:Latest", "", "x\"y", "模型"])
def test_model_is_echoed(model: str) -> None:
    """Every line names the model as the client did, whatever the engine calls it."""
    assert {line["model"] for line in chat(ev("a"), STOP, DONE, model=model)} == {model}


def test_each_line_has_its_own_time() -> None:
    """RFC 3339 in UTC with a fraction on every line."""
    times = iter(datetime(2026, 10, 30, 23, 59, 59, 999999, timezone.utc) + timedelta(seconds=s)
                 for s in range(2))
    stamps = [line["created_at"] for line in chat(ev("a"), STOP, DONE, clock=lambda: next(times))]
    assert stamps == ["2026-10-30T23:59:59.999999Z", "2026-10-31T00:00:00.999999Z"]


def test_time_is_the_present_unless_said() -> None:
    """Without a clock of its own an answer is stamped with the time of the machine."""
    plain = Answer("m", "chat", True, started=0.0, loaded=0.0)
    before = datetime.now(timezone.utc)
    stamp = next(chat_lines([ev("a")], plain))["created_at"]
    assert before <= datetime.fromisoformat(stamp.replace("Z", "+00:00")) <= datetime.now(
        timezone.utc)


def test_very_long_event_is_told_in_short_lines() -> None:
    """A client that reads lines of at most 128 KiB gets all of it, the thinking first."""
    content, thinking = "\0北" * 50_000, "\x01" * 50_000
    lines = chat(chunk({"content": content, "reasoning": thinking}), STOP, DONE)
    told = [line["message"] for line in lines]
    assert "".join(message["content"] for message in told) == content
    assert "".join(message.get("thinking", "") for message in told) == thinking
    assert all(len(jsontext.encode(line)) < 100_000 for line in lines)
    first = next(i for i, message in enumerate(told) if message["content"])
    assert not any("thinking" in message for message in told[first:])
