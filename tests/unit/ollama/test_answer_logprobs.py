"""Log probabilities of every engine API in Ollama's form."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.answer import chat_lines, whole
from tests.fakes.stream_steps import DONE, STOP, data
from tests.unit.ollama.answering import answer, chat, generate, read


def token(text: str, logprob: Any = -0.5, raw: Any = (97,), **more: Any) -> dict[str, Any]:
    """A token as llama-server reports it; a `raw` of None is left out."""
    fields = {"id": 7, "token": text, "bytes": list(raw) if raw is not None else None}
    return {k: v for k, v in fields.items() if v is not None} | {"logprob": logprob, **more}


def seen(text: str, logprob: float = -0.5, raw: Any = (97,), **more: Any) -> dict[str, Any]:
    """The same token as an Ollama client gets it."""
    fields = {"token": text, "logprob": logprob, "bytes": list(raw) if raw is not None else None}
    return {k: v for k, v in fields.items() if v is not None} | more


def event(found: Any, content: str = "a") -> bytes:
    """An event of the chat API with these log probabilities."""
    return data({"choices": [{"index": 0, "delta": {"content": content}, "logprobs": found}]})


OTHERS = [token("a"), token("b", -1.5, [98]), token("c", -2, [99])]
SEEN = [seen("a"), seen("b", -1.5, [98]), seen("c", -2.0, [99])]
TRIMMED: dict[str, tuple[int | None, Any]] = {
    "not_asked": (None, None), "none": (0, None), "one": (1, SEEN[:1]), "two": (2, SEEN[:2]),
    "all": (3, SEEN), "more_than_there_are": (20, SEEN),
}
ENTRIES: dict[str, tuple[Any, Any]] = {
    "plain": (token("a"), seen("a")),
    "half_a_character": (token("", -1.0, [240, 159]), seen("", -1.0, [240, 159])),
    "no_bytes": (token("a", raw=None), seen("a", raw=None)),
    "bytes_null": ({"token": "a", "logprob": -0.5, "bytes": None}, seen("a", raw=None)),
    "odd_bytes": ({"token": "a", "logprob": 0, "bytes": [1, None, True, 2.5, 3]},
                  seen("a", 0.0, [1, 3])),
    "null": (token("a", None), seen("a", -9999.0)),
    "nan": (token("a", float("nan")), seen("a", -9999.0)),
    "minus_infinity": (token("a", float("-inf")), seen("a", -9999.0)),
    "infinity": (token("a", float("inf")), seen("a", -9999.0)),
    "huge": (token("a", -10**400), seen("a", -9999.0)),
    "text": (token("a", "-0.5"), seen("a", -9999.0)),
    "true": (token("a", True), seen("a", -9999.0)),
    "no_token": ({"logprob": -0.5}, seen("", raw=None)),
}
ABSENT = [None, {}, [], {"content": None}, {"content": []}, {"content": [None, 5]}, "x", 5,
          {"refusal": []}, {"tokens": []}]


@pytest.mark.parametrize(("top", "found"), TRIMMED.values(), ids=TRIMMED)
def test_alternatives_are_as_many_as_asked_for(top: int | None, found: Any) -> None:
    """Engines are asked for at least one; the client gets what it wanted, or no such field."""
    entry = token("a", top_logprobs=OTHERS)
    expected = seen("a") if found is None else seen("a", top_logprobs=found)
    lines = chat(event({"content": [entry]}), STOP, DONE, top_logprobs=top)
    assert lines[0]["logprobs"] == [expected]
    assert "logprobs" not in lines[1]


@pytest.mark.parametrize(("entry", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_entry(entry: Any, expected: Any) -> None:
    """Bytes are the engine's own, its ids go, and no number is one that JSON cannot hold."""
    found = {"content": [{**entry, "top_logprobs": [entry]}]}
    lines = chat(event(found), STOP, DONE, top_logprobs=5)
    assert lines[0]["logprobs"] == [{**expected, "top_logprobs": [expected]}]


@pytest.mark.parametrize("found", ABSENT, ids=str)
def test_no_entries_no_field(found: Any) -> None:
    """A line without probabilities has no such field."""
    assert "logprobs" not in chat(event(found), STOP, DONE, top_logprobs=5)[0]


def test_entries_without_text_are_told() -> None:
    """Half a character has no text yet, and still a probability."""
    lines = chat(event({"content": [token("", raw=[240])]}, content=""), STOP, DONE)
    assert [line["message"]["content"] for line in lines] == ["", ""]
    assert lines[0]["logprobs"] == [seen("", raw=[240])]


def test_generate_has_them_too() -> None:
    """The same entries in the other shape."""
    line = generate(event({"content": [token("a")]}), STOP, DONE)[0]
    assert (line["response"], line["logprobs"]) == ("a", [seen("a")])


def test_completion_of_llama_server() -> None:
    """``completion_probabilities`` hold the same entries."""
    entry = token("a", top_logprobs=OTHERS)
    said = data({"content": "a", "stop": False, "completion_probabilities": [entry]})
    ended = data({"content": "", "stop": True, "completion_probabilities": []})
    lines = generate(said, ended, style="completion", top_logprobs=1)
    assert lines[0]["logprobs"] == [seen("a", top_logprobs=SEEN[:1])]
    assert "logprobs" not in lines[1]


def text(found: Any) -> bytes:
    """An event of the older completions API."""
    return data({"choices": [{"index": 0, "text": "ab", "logprobs": found}]})


def test_text_completion_of_llama_server() -> None:
    """It uses the form of the chat API there."""
    lines = generate(text({"content": [token("a")]}), DONE, style="text")
    assert lines[0]["logprobs"] == [seen("a")]


LISTS: dict[str, tuple[Any, Any]] = {
    "all": ({"tokens": ["a", "b"], "token_logprobs": [-0.5, -1.5], "text_offset": [0, 1],
             "top_logprobs": [{"a": -0.5, "c": -2}, {"b": -1.5}]},
            [seen("a", raw=None, top_logprobs=[seen("a", raw=None)]),
             seen("b", -1.5, None, top_logprobs=[seen("b", -1.5, None)])]),
    "no_alternatives": ({"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": None},
                        [seen("a", raw=None)]),
    "first_is_null": ({"tokens": ["a"], "token_logprobs": [None], "top_logprobs": [None]},
                      [seen("a", -9999.0, None)]),
    "short": ({"tokens": ["a", 5], "token_logprobs": [-0.5]},
              [seen("a", raw=None), seen("", -9999.0, None)]),
    "no_values": ({"tokens": ["a"]}, [seen("a", -9999.0, None)]),
}


@pytest.mark.parametrize(("found", "expected"), LISTS.values(), ids=LISTS)
def test_parallel_lists_of_other_engines(found: Any, expected: Any) -> None:
    """OpenAI's older form has a list of each; bytes are not known there."""
    lines = generate(text(found), DONE, style="text", top_logprobs=1)
    assert lines[0]["logprobs"] == expected


def test_they_are_joined_where_there_is_no_stream() -> None:
    """All entries in their order."""
    events = [event({"content": [token(str(i))]}) for i in range(3)]
    one = whole(chat_lines(iter([*events, STOP]), answer()))
    assert one["logprobs"] == [seen("0"), seen("1"), seen("2")]
    assert list(one)[2:6] == ["message", "done", "done_reason", "logprobs"]


def test_many_at_once_are_told_in_short_lines() -> None:
    """A document has those of all its tokens; none gets lost and no line gets long."""
    entries = [token(str(i), top_logprobs=[token("x")] * 20) for i in range(500)]
    document = {"choices": [{"message": {"content": "abc"}, "logprobs": {"content": entries}}]}
    raw = data(document)[len(b"data: "):]
    lines = read(chat_lines([raw], answer(stream_type=False, top_logprobs=20)))
    assert "".join(line["message"]["content"] for line in lines) == "abc"
    assert [each["token"] for line in lines for each in line.get("logprobs", [])] == [
        str(i) for i in range(500)
    ]
    assert max(len(str(line)) for line in lines) < 100_000
