"""A chat over the engine's context loses its oldest messages, and only those."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.request import chat, generate
from app.api.ollama.request.ask import Ask
from tests.unit.ollama.request_cases import LLAMA, PNG

WORDS = "word " * 100


def ask(*messages: str | dict[str, Any], **fields: Any) -> Ask:
    """The ask for a chat of these messages, `role text` or whole."""
    whole = [m if isinstance(m, dict) else dict(zip(("role", "content"), m.split(" ", 1)))
             for m in messages]
    return chat.ask({"messages": whole, **fields}, LLAMA, False)


def kept(asked: Ask | None) -> list[str]:
    """The first word of each message that is left."""
    assert asked
    return [str(m["content"]).split(" ", 1)[0] or m["role"] for m in asked.body["messages"]]


def turns(count: int) -> list[str]:
    """Questions and answers of one length, the last one a question."""
    return [f"{role} {role[0]}{i} {WORDS}" for i in range(1, count + 1)
            for role in ("user", "assistant")][:-1]


CALL = {"function": {"name": "f", "arguments": {"text": WORDS}}}
LOOP: list[str | dict[str, Any]] = [
    f"user u1 {WORDS}",
    {"role": "assistant", "content": "a1", "tool_calls": [CALL]}, f"tool t1 {WORDS}",
    {"role": "assistant", "content": "a2", "tool_calls": [CALL]}, f"tool t2 {WORDS}",
]


@pytest.mark.parametrize(("tokens", "context", "left"), [
    (1000, 4000, "u2 a2 u3 a3 u4"),  # it should have fitted: one step
    (1000, 1000, "u2 a2 u3 a3 u4"),
    (1000, 830, "u2 a2 u3 a3 u4"),  # 726 for the prompt
    (1000, 800, "u3 a3 u4"),  # 700 for the prompt, not quite 5 messages of 7
    (1000, 450, "u4"),
    (1000, 10, "u4"),
])
def test_as_many_go_as_it_takes(tokens: int, context: int, left: str) -> None:
    """By their length, with room for an answer; what is left begins with a question."""
    assert kept(chat.shortened(ask(*turns(4)), tokens, context)) == left.split()


def test_system_messages_stay() -> None:
    """Wherever they stand, in their order."""
    messages = [f"system s1 {WORDS}", *turns(2), "system s2", f"user u3 {WORDS}"]
    assert kept(chat.shortened(ask(*messages), 1000, 500)) == ["s1", "s2", "u3"]


def test_a_result_stays_with_its_call() -> None:
    """A tool's result without the call before it would mean nothing."""
    assert kept(chat.shortened(ask(*LOOP), 1000, 950)) == ["a1", "t1", "a2", "t2"]
    assert kept(chat.shortened(ask(*LOOP), 1000, 700)) == ["a2", "t2"]
    assert kept(chat.shortened(ask(*LOOP), 1000, 1)) == ["a2", "t2"]


def test_a_new_question_may_keep_the_calls_before_it() -> None:
    """A long run of tools does not go whole where a part is enough."""
    short = chat.shortened(ask(*LOOP, "user u2"), 1000, 950)
    assert kept(short) == ["a1", "t1", "a2", "t2", "u2"]


def test_an_answer_comes_first_only_where_nothing_else_is_left() -> None:
    """The last message stays, whoever it is from."""
    assert kept(chat.shortened(ask(*turns(1), "assistant a1"), 1000, 900)) == ["a1"]


@pytest.mark.parametrize("messages", [
    [], ["user u1"], ["system s1", "user u1"], ["system s1"], ["user u1", "system s1"],
    LOOP[1:3],
], ids=repr)
def test_nothing_is_left_to_leave_out(messages: list[str | dict[str, Any]]) -> None:
    """The last message is never left out, nor the call that it answers."""
    assert chat.shortened(ask(*messages), 1000, 500) is None


def test_it_comes_to_an_end() -> None:
    """Each step leaves out something, until only what has to stay is left."""
    asked: Ask | None = ask("system s", *turns(30))
    steps = 0
    while asked:
        before, asked = kept(asked), chat.shortened(asked, 1000, 4000)
        steps += 1
        assert asked is None or len(kept(asked)) < len(before)
    assert before == ["s", "u30"]
    assert steps == 30


def test_images_weigh_as_much_as_in_ollama() -> None:
    """By their tokens, not by the length of their base64."""
    picture = {"role": "user", "content": "u1", "images": [PNG[:-4] + "A" * 400_000]}
    messages = [picture, "assistant a1", f"user u2 {WORDS * 20}", "assistant a2", "user u3"]
    assert kept(chat.shortened(ask(*messages), 1000, 1000))[0].startswith("u2")
    assert kept(chat.shortened(ask(*messages), 1000, 700)) == ["u3"]


def test_all_else_stays() -> None:
    """Only the messages change, and not those of the ask that was given."""
    whole = ask(*turns(3), tools=[{"function": {"name": "f"}}], options={"seed": 3})
    before = kept(whole)
    short = chat.shortened(whole, 1000, 900)
    assert short and (short.target, short.style) == (whole.target, whole.style)
    assert {**short.body, "messages": whole.body["messages"]} == whole.body
    assert kept(whole) == before


def test_many_messages_take_linear_time() -> None:
    """A history of a hundred thousand messages is no problem."""
    messages = [{"role": role, "content": "x"} for _ in range(50_000)
                for role in ("user", "assistant")]
    asked = chat.shortened(ask(*messages), 300_000, 4096)
    assert asked and len(asked.body["messages"]) < 2000


@pytest.mark.parametrize("fields", [
    {"prompt": "p"}, {"prompt": "p", "raw": True}, {"prompt": "p", "context": [1]},
    {"prompt": "p", "suffix": "s"},
], ids=repr)
def test_a_prompt_is_not_shortened(fields: dict[str, Any]) -> None:
    """There is one question in it, or none."""
    assert chat.shortened(generate.ask(fields, LLAMA, False), 1000, 500) is None
