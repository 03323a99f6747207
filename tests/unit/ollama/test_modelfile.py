"""What a created model adds to its requests."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.modelfile import NOTHING, Modelfile
from app.api.ollama.request.turns import prompt
from tests.unit.ollama.request_cases import refusal

HI = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "S"}
FULL = Modelfile(system="S", template="T{{ .Prompt }}", parameters={"seed": 1, "top_k": 2},
                 messages=(HI,))

STORED: list[tuple[dict[str, Any], Modelfile]] = [
    ({}, NOTHING), ({"system": 1, "template": [], "parameters": "x", "messages": {}}, NOTHING),
    ({"messages": [1, HI, None], "license": "MIT"}, Modelfile(messages=(HI,), licences=("MIT",))),
    ({"license": ["a", 1, "", "b"], "from": "m"}, Modelfile(base="m", licences=("a", "b"))),
]


@pytest.mark.parametrize(("stored", "found"), STORED)
def test_a_manifest_may_hold_anything(stored: dict[str, Any], found: Modelfile) -> None:
    """What is of a wrong type does not count."""
    assert Modelfile.of(stored) == found


def test_a_model_that_adds_nothing() -> None:
    """Leaves a chat as it is, but for what is no field of one."""
    fields = {"model": "m", "messages": [HI], "options": {"seed": None}, "template": "ignored"}
    assert NOTHING.for_chat(fields) == {**fields, "template": ""}


def test_options_of_the_request_win() -> None:
    """Each by itself; null is none."""
    fields = {"messages": [HI], "options": {"seed": 5, "top_k": None, "top_p": 1}}
    assert FULL.for_chat(fields)["options"] == {"seed": 5, "top_k": 2, "top_p": 1}
    assert FULL.for_chat({"messages": [HI]})["options"] == {"seed": 1, "top_k": 2}


PROMPTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"system": "S", "template": FULL.template, "earlier": [HI]}),
    ({"system": "own", "template": "own"}, {"system": "own", "template": "own", "earlier": [HI]}),
    ({"context": [1]}, {"system": "S", "template": FULL.template, "earlier": []}),
    ({"suffix": "x"}, {"system": "S", "template": "", "earlier": [HI]}),
    ({"raw": True, "earlier": [SYSTEM]}, {"system": None, "template": None, "earlier": []}),
]


@pytest.mark.parametrize(("fields", "added"), PROMPTS)
def test_a_prompt(fields: dict[str, Any], added: dict[str, Any]) -> None:
    """Gets what a prompt of its kind takes."""
    made = FULL.for_generate({"prompt": "p", **fields})
    assert {key: made.get(key) for key in added} == added
    assert made["options"] == {"seed": 1, "top_k": 2}


SOURCE = "{{ if .System }}<{{ .System }}>{{ end }}{{ if .Prompt }}[{{ .Prompt }}]{{ end }}"
ANSWERED = f"{SOURCE}({{{{ .Response }}}})"


def said(*contents: str) -> list[dict[str, Any]]:
    """Messages; the first letter is the role's."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": roles[content[0]], "content": content} for content in contents]


TOLD = [
    (ANSWERED, said("u1"), "[u1]("), (ANSWERED, said("s1", "u1"), "<s1>[u1]("),
    (ANSWERED, said("u1", "a1", "u2"), "[u1](a1)[u2]("),
    (ANSWERED, said("u1", "s1", "u2"), "[u1]()<s1>[u2]("),
    (ANSWERED, said("u1", "u2"), "[u1\n\nu2]("), (ANSWERED, said("u1", "a1"), "[u1](a1"),
    (SOURCE, said("u1", "a1", "u2"), "[u1]a1[u2]"), (ANSWERED, [], "("),
]


@pytest.mark.parametrize(("source", "messages", "text"), TOLD)
def test_a_chat_turn_by_turn(source: str, messages: list[dict[str, Any]], text: str) -> None:
    """Each turn by the whole template, the last up to the answer, as in Ollama."""
    assert prompt(source, messages).text == text


def test_pictures_are_numbered_over_all_messages() -> None:
    """In the order in which they come."""
    picture = "iVBORw0KGgo="
    found = prompt("{{ .Prompt }}|", [
        {**HI, "images": [picture]}, {"role": "assistant", "content": "a"},
        {**HI, "images": [picture, picture]}])
    assert found.text == "[img-0]hi|a[img-1][img-2]hi|" and len(found.images) == 3


def test_another_role() -> None:
    """Has no place in such a template."""
    found = refusal(lambda: prompt(SOURCE, [{"role": "tool", "content": "x"}]))
    assert "messages[0].role" in str(found)
