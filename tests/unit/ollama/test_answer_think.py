"""Thinking between tags in the text, for engines that do not part it themselves."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.api.ollama.answer.think import ThinkSplitter
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev
from tests.unit.ollama.answering import chat, done, generate, said

# text → content, thinking; where the text may begin with the tag
TAGGED = {
    "": ("", ""),
    "a": ("a", ""),
    " \n": (" \n", ""),
    " a ": (" a ", ""),
    "<think>t</think>a": ("a", "t"),
    " \n<think>\n t </think>\n\n a ": ("a ", "t "),
    "<think></think>a": ("a", ""),
    "<think>\n\n</think>\n\na": ("a", ""),
    "<think>t": ("", "t"),
    "<think>t</thi": ("", "t</thi"),
    "<think>t <": ("", "t <"),
    "<think>t</think>": ("", "t"),
    "<think>t</think>\n": ("", "t"),
    "<think>t</thin</think>a": ("a", "t</thin"),
    "<think>a<b</ think>c</think>d": ("d", "a<b</ think>c"),
    "<think>t</think>a<think>b</think>c": ("a<think>b</think>c", "t"),
    "<think><think>t</think>a": ("a", "<think>t"),
    "a<think>t</think>": ("a<think>t</think>", ""),
    "</think>a": ("</think>a", ""),
    "<thi": ("<thi", ""),
    "<thinker>a": ("<thinker>a", ""),
    "<Think>a": ("<Think>a", ""),
    "<think": ("<think", ""),
    "<think>": ("", ""),
    "<think>北😀</think>😀": ("😀", "北😀"),
}
# the same where the prompt ended with the tag
OPENED = {
    "": ("", ""),
    "t": ("", "t"),
    "\nt</think>\n\na": ("a", "t"),
    "</think>a": ("a", ""),
    "<think>t</think>a": ("a", "<think>t"),
    "a</think>b</think>c": ("b</think>c", "a"),
}
CASES = [(text, found, False) for text, found in TAGGED.items()] + [
    (text, found, True) for text, found in OPENED.items()
]
PIECES = st.lists(st.sampled_from(
    ["<think>", "</think>", "<", "/", "<thi", "</thi", "nk>", " ", "\n", "a", "北"]), max_size=12)
MANY = settings(max_examples=500, deadline=None, database=None)


def parted(pieces: Iterable[str], opened: bool) -> tuple[str, str]:
    """Content and thinking of a text in these pieces."""
    splitter = ThinkSplitter(opened)
    found = [splitter.split(piece) for piece in pieces]
    found.append(splitter.rest())
    return "".join(content for content, _ in found), "".join(thinking for _, thinking in found)


@pytest.mark.parametrize(("text", "found", "opened"), CASES)
def test_text_is_parted(text: str, found: tuple[str, str], opened: bool) -> None:
    """One block at the start counts; all other text stays as it is, and none is lost."""
    assert parted([text], opened) == found


@pytest.mark.parametrize(("text", "found", "opened"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_text_is_parted_in_pieces(
    text: str, found: tuple[str, str], opened: bool, size: int
) -> None:
    """A tag in pieces is a tag."""
    assert parted((text[i:i + size] for i in range(0, len(text), size)), opened) == found


@MANY
@given(PIECES, st.booleans())
@example(["<think>", "</thi", "</think>", "a"], False)
def test_any_cut_gives_the_same_text(pieces: list[str], opened: bool) -> None:
    """Content and thinking do not depend on how the text comes."""
    assert parted(pieces, opened) == parted(["".join(pieces)], opened)


@MANY
@given(PIECES, st.booleans())
def test_no_more_than_a_tag_is_held_back(pieces: list[str], opened: bool) -> None:
    """Behind the white space at the start, fewer characters than a tag has wait for the next."""
    splitter = ThinkSplitter(opened)
    for piece in pieces:
        splitter.split(piece)
    assert len("".join(splitter.rest()).lstrip()) < len("</think>")


def test_lines_have_thinking_and_content() -> None:
    """Thinking comes as thinking, at once; what may be a tag comes when that is clear."""
    pieces = [ev("<thi"), ev("nk>\nA "), ev("B<"), ev("/think>\n"), ev("\nC"), ev("<D"), STOP, DONE]
    assert chat(*pieces, think_tags=True) == [
        said("", thinking="A "), said("", thinking="B"), said("C"), said("<D"), done(eval_count=6),
    ]


@pytest.mark.parametrize("end", [[STOP, DONE], [STOP], [DONE], [chunk({}, "length")]],
                         ids=["both", "stop", "done", "length"])
def test_text_held_back_is_told_at_the_end(end: list[bytes]) -> None:
    """What turned out to be no tag is not lost."""
    lines = chat(ev("<think>a</th"), *end, think_tags=True)
    assert [line["message"].get("thinking") for line in lines] == ["a", "</th", None]
    assert chat(ev(" <th"), *end, think_tags=True)[0] == said(" <th")


def test_end_and_text_in_one_event() -> None:
    """The last word may come with the reason."""
    lines = chat(chunk({"content": "<think>a</think>b<"}, "stop"), DONE, think_tags=True)
    assert lines == [said("b<", thinking="a"), done()]


def test_open_prompt() -> None:
    """A template that opens the block itself: the text begins within it."""
    pieces = [data({"content": text, "stop": False}) for text in ("a", "</think>b")]
    lines = generate(*pieces, data({"content": "", "stop": True}), style="completion",
                     think_tags=True, think_opened=True)
    assert [(line["response"], line.get("thinking")) for line in lines] == [
        ("", "a"), ("b", None), ("", None)
    ]


def test_engine_that_parts_and_leaves_tags() -> None:
    """The engine's own thinking comes first."""
    both = chunk({"reasoning": "a", "content": "<think>b</think>c"})
    assert chat(both, DONE, think_tags=True)[0] == said("c", thinking="ab")


def test_tags_are_text_unless_said() -> None:
    """By default nothing is held back and nothing parted."""
    lines = chat(ev("<think>a</think>b"), STOP, DONE)
    assert lines == [said("<think>a</think>b"), done()]
