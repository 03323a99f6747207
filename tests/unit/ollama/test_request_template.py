"""Go templates: the part that prompts are usually written in."""

from __future__ import annotations

import pytest

from app.api.ollama.request.template import render
from tests.unit.ollama.request_cases import refusal

BOTH = {"system": "S", "prompt": "P", "suffix": "X"}
ALONE = {"system": "", "prompt": "P"}
CHATML = """{{- if .System }}<|im_start|>system
{{ .System }}<|im_end|>
{{ end }}{{ if .Prompt }}<|im_start|>user
{{ .Prompt }}<|im_end|>
{{ end }}<|im_start|>assistant
{{ .Response }}<|im_end|>
"""

RENDERED: list[tuple[str, dict[str, str], str]] = [
    ("", BOTH, ""),
    ("text only", BOTH, "text only"),
    ("{{ .Prompt }}", BOTH, "P"),
    ("{{.Prompt}}", BOTH, "P"),
    ("{{\t.System\n}}-{{ .Prompt }}", BOTH, "S-P"),
    ("{{ .Prompt }}{{ .Prompt }}", BOTH, "PP"),
    ("{{ .Prompt }}", {}, ""),
    ("a {{- .Prompt -}} b", BOTH, "aPb"),
    ("a\r\n\t {{- .Prompt }} b", BOTH, "aP b"),
    ("a {{ .Prompt -}}\n b", BOTH, "a Pb"),
    ("a {{- /* words */ -}} b", BOTH, "ab"),
    ("a{{/* if */}}b", BOTH, "ab"),
    ("a\u00a0{{- .Prompt }}", BOTH, "a\u00a0P"),
    ("{{ if .System }}[{{ .System }}]{{ end }}{{ .Prompt }}", BOTH, "[S]P"),
    ("{{ if .System }}[{{ .System }}]{{ end }}{{ .Prompt }}", ALONE, "P"),
    ("{{ if .System }}a{{ else }}b{{ end }}", BOTH, "a"),
    ("{{ if .System }}a{{ else }}b{{ end }}", ALONE, "b"),
    ("{{ if .System }}a{{ else if .Prompt }}b{{ else }}c{{ end }}", BOTH, "a"),
    ("{{ if .System }}a{{ else if .Prompt }}b{{ else }}c{{ end }}", ALONE, "b"),
    ("{{ if .System }}a{{ else if .Suffix }}b{{ else }}c{{ end }}", ALONE, "c"),
    ("{{ if .Prompt }}{{ if .System }}a{{ else }}b{{ end }}c{{ end }}", ALONE, "bc"),
    ("{{ if .System }}{{ if .Prompt }}a{{ else }}b{{ end }}c{{ end }}d", ALONE, "d"),
    ("{{  if   .System  }}a{{  else  if  .Prompt  }}b{{  end  }}", ALONE, "b"),
    ("{{ .Prompt }} {{ .Response }} after", BOTH, "P "),
    ("{{ if .System }}{{ .Response }}{{ end }}after", ALONE, ""),
    ("{ {{ .Prompt }} }", BOTH, "{ P }"),
    ("{{ .Prompt }}", {"prompt": "{{ .System }}"}, "{{ .System }}"),
    (CHATML, {"system": "S", "prompt": "P"},
     "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nP<|im_end|>\n<|im_start|>assistant\n"),
    (CHATML, ALONE, "<|im_start|>user\nP<|im_end|>\n<|im_start|>assistant\n"),
]


@pytest.mark.parametrize(("template", "values", "prompt"), RENDERED)
def test_a_template_is_rendered(template: str, values: dict[str, str], prompt: str) -> None:
    """As Go renders it; the prompt ends where the response begins."""
    assert render(template, values) == prompt


def test_a_whole_template_goes_on_after_the_response() -> None:
    """With a suffix, what follows the response belongs to the prompt."""
    fim = "<pre>{{ .Prompt }}<suf>{{ .Suffix }}<mid>{{ .Response }}<end>"
    assert render(fim, BOTH, whole=True) == "<pre>P<suf>X<mid><end>"


@pytest.mark.parametrize("action", [
    "range .Messages", ".Messages", ".Tools", "json .", ".prompt", "$.Prompt", ".Prompt | upper",
    'if eq .System "x"', "if and .System .Prompt", "if not .System", "if", "with .System", ".",
    "template \"x\"", "block", "else with .X", "end x", '"text"', "", "- .Prompt", "-1", "/* open",
    "else if .Tools", "break", "if .System .Prompt",
])
def test_another_action_is_refused_by_name(action: str) -> None:
    """The refusal names it, and what can be written instead."""
    quoted = action.replace('"', '\\"')
    assert refusal(render, "a {{ " + action + " }} b", BOTH) == (
        f'template: the action "{quoted}" is not supported; only .System, .Prompt, .Response, '
        ".Suffix, if, else and end are")


@pytest.mark.parametrize(("template", "text"), [
    ("{{ if .System }}a", "template: unexpected EOF, an {{ if }} has no {{ end }}"),
    ("{{ end }}", "template: unexpected {{ end }}"),
    ("{{ else }}", "template: unexpected {{ else }}"),
    ("{{ else if .System }}", "template: unexpected {{ else if .System }}"),
    ("{{ if .System }}{{ else }}{{ else }}{{ end }}", "template: a branch after {{ else }}"),
    ("{{ if .System }}{{ else }}{{ else if .Prompt }}{{ end }}",
     "template: a branch after {{ else }}"),
    ("{{ .Prompt", "template: unclosed action"),
    ("{{ .Prompt }} {{ .System }", "template: unclosed action"),
])
def test_broken_syntax_is_refused(template: str, text: str) -> None:
    """With a word on what is wrong."""
    assert refusal(render, template, BOTH) == text


@pytest.mark.parametrize("template", ["{{" * 500_000, "{{-" * 500_000, "{{ if .System }}" * 50_000])
def test_a_long_broken_template_is_refused(template: str) -> None:
    """In linear time."""
    assert refusal(render, template, BOTH).startswith("template: ")
