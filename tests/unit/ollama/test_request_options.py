"""Options: every sampler for llama-server, what is portable for other engines."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.request.options import engine_fields
from app.engine_facts import EngineFacts
from tests.unit.ollama.request_cases import LLAMA, NO_CONTEXT, OTHER, refusal

DEFAULTS = {
    "n_predict": 40960, "seed": -1, "top_k": 40, "n_keep": 4, "temperature": 0.8, "top_p": 0.9,
    "min_p": 0.0, "typical_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
    "repeat_last_n": 64, "repeat_penalty": 1.0,
}
HUGE = 3.4e38
LONGEST = 2**31 - 1


@pytest.mark.parametrize("options", [
    {},
    {name: None for name in (*DEFAULTS, "num_predict", "num_keep", "stop", "mirostat")},
    {"num_ctx": 8192, "num_batch": 1, "num_gpu": 99, "main_gpu": 0, "use_mmap": False,
     "num_thread": 4, "draft_num_predict": 2},
    {"num_ctx": "big", "use_mmap": "yes", "num_gpu": []},
    {"tfs_z": 1.0, "penalize_newline": True, "numa": False, "low_vram": True, "f16_kv": True,
     "vocab_only": False, "use_mlock": True, "logits_all": False, "embedding_only": False,
     "num_gqa": 8, "rope_frequency_base": 1e4, "rope_frequency_scale": 1.0},
    {"mirostat": "off", "mirostat_tau": [], "mirostat_eta": True},
    {"Temperature": 0.1, "max_tokens": 5, "keep_alive": "5m", "format": "json", "unknown": {}},
    {"stop": []}, {"stop": ""}, {"stop": ["", ""]},
], ids=repr)
def test_llama_server_gets_every_sampler(options: dict[str, Any]) -> None:
    """With Ollama's defaults, whatever is null, unknown, of old or only for the start."""
    assert engine_fields(options, LLAMA) == DEFAULTS


ONE = [
    ("num_predict", 1, "n_predict", 1),
    ("num_predict", 2.9, "n_predict", 2),
    ("num_predict", 0, "n_predict", 1),
    ("num_predict", -1, "n_predict", 40960),
    ("num_predict", -2, "n_predict", 4096),
    ("num_predict", -3, "n_predict", 40960),
    ("num_predict", 10**9, "n_predict", 40960),
    ("num_predict", 1e300, "n_predict", 40960),
    ("temperature", 0, "temperature", 0.0),
    ("temperature", 1.5, "temperature", 1.5),
    ("temperature", -1, "temperature", 0.0),
    ("temperature", 1e300, "temperature", HUGE),
    ("temperature", 10**400, "temperature", HUGE),
    ("top_k", 0, "top_k", 0),
    ("top_k", -1, "top_k", 0),
    ("top_k", 20.7, "top_k", 20),
    ("top_k", 2**31, "top_k", LONGEST),
    ("top_p", 2, "top_p", 1.0),
    ("top_p", -0.5, "top_p", 0.0),
    ("min_p", 0.05, "min_p", 0.05),
    ("min_p", -1, "min_p", 0.0),
    ("typical_p", 0.7, "typical_p", 0.7),
    ("typical_p", 5, "typical_p", 1.0),
    ("seed", 42, "seed", 42),
    ("seed", 42.0, "seed", 42),
    ("seed", -7, "seed", -7),
    ("seed", 2**70, "seed", 2**63 - 1),
    ("repeat_last_n", 0, "repeat_last_n", 0),
    ("repeat_last_n", -1, "repeat_last_n", 4096),
    ("repeat_last_n", -5, "repeat_last_n", 4096),
    ("repeat_last_n", 2**31 - 1, "repeat_last_n", 4096),
    ("repeat_penalty", 1.1, "repeat_penalty", 1.1),
    ("repeat_penalty", 0, "repeat_penalty", 1.0),
    ("repeat_penalty", -2, "repeat_penalty", 1.0),
    ("repeat_penalty", 1e300, "repeat_penalty", HUGE),
    ("presence_penalty", -2, "presence_penalty", -2.0),
    ("frequency_penalty", 1.5, "frequency_penalty", 1.5),
    ("num_keep", 0, "n_keep", 0),
    ("num_keep", -1, "n_keep", -1),
    ("num_keep", -2, "n_keep", -1),
    ("num_keep", 2**40, "n_keep", LONGEST),
    ("mirostat", 2, "mirostat", 2),
    ("mirostat", 0, "mirostat", 0),
    ("mirostat", 7, "mirostat", 2),
    ("mirostat", -1, "mirostat", 0),
    ("mirostat", 10**400, "mirostat", 2),
    ("mirostat_tau", 5, "mirostat_tau", 5.0),
    ("mirostat_tau", -1, "mirostat_tau", 0.0),
    ("mirostat_eta", 0.1, "mirostat_eta", 0.1),
    ("stop", "END", "stop", ["END"]),
    ("stop", ["a", "", "b"], "stop", ["a", "b"]),
]


@pytest.mark.parametrize(("name", "given", "field", "sent"), ONE)
def test_one_option(name: str, given: Any, field: str, sent: Any) -> None:
    """Whole numbers are cut, ranges kept, and no other field changes."""
    fields = engine_fields({name: given}, LLAMA)
    assert fields == {**DEFAULTS, field: sent}
    assert type(fields[field]) is type(sent)


@pytest.mark.parametrize(("options", "field", "sent"), [
    ({}, "n_predict", -1),
    ({"num_predict": -2}, "n_predict", -1),
    ({"num_predict": 2**40}, "n_predict", LONGEST),
    ({"repeat_last_n": -1}, "repeat_last_n", 2**20),
    ({"repeat_last_n": LONGEST}, "repeat_last_n", 2**20),
])
def test_the_context_is_not_known(options: dict[str, Any], field: str, sent: int) -> None:
    """Nothing is capped by it then, but the engine is never made to allocate gigabytes."""
    assert engine_fields(options, NO_CONTEXT)[field] == sent


PORTABLE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"seed": -1, "num_predict": -1, "stop": []}, {}),
    ({"num_predict": -2}, {}),
    ({"num_predict": 0}, {"max_tokens": 1}),
    ({"num_predict": 128}, {"max_tokens": 128}),
    ({"temperature": 0.3, "top_p": 0.5}, {"temperature": 0.3, "top_p": 0.5}),
    ({"temperature": 9, "top_p": 0}, {"temperature": 2.0, "top_p": 1e-6}),
    ({"temperature": -1, "top_p": 2}, {"temperature": 0.0, "top_p": 1.0}),
    ({"presence_penalty": 3, "frequency_penalty": -3},
     {"presence_penalty": 2.0, "frequency_penalty": -2.0}),
    ({"seed": 7.0, "stop": "x"}, {"seed": 7, "stop": ["x"]}),
    ({"top_k": 1, "min_p": 0.1, "typical_p": 0.5, "repeat_penalty": 1.2, "repeat_last_n": 8,
      "num_keep": 1, "mirostat": 1, "num_ctx": 1, "temperature": None}, {}),
]


@pytest.mark.parametrize(("options", "sent"), PORTABLE, ids=repr)
def test_other_engines_get_what_was_asked_for(
        options: dict[str, Any], sent: dict[str, Any]) -> None:
    """Only fields that every engine knows, in the ranges that the strict ones take."""
    assert engine_fields(options, OTHER) == sent


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"num_predict": "5"}, 'option "num_predict" must be of type integer'),
    ({"num_predict": True}, 'option "num_predict" must be of type integer'),
    ({"seed": "x"}, 'option "seed" must be of type integer'),
    ({"temperature": "0.8"}, 'option "temperature" must be of type float32'),
    ({"top_p": False}, 'option "top_p" must be of type float32'),
    ({"presence_penalty": []}, 'option "presence_penalty" must be of type float32'),
    ({"stop": 5}, 'option "stop" must be of type array'),
    ({"stop": {"a": "b"}}, 'option "stop" must be of type array'),
    ({"stop": ["a", 5]}, 'option "stop" must be of an array of strings'),
    ({"stop": [None]}, 'option "stop" must be of an array of strings'),
]


@pytest.mark.parametrize("facts", [LLAMA, OTHER], ids=lambda facts: facts.kind)
@pytest.mark.parametrize(("options", "text"), WRONG, ids=repr)
def test_a_wrong_type_is_refused(options: dict[str, Any], text: str, facts: EngineFacts) -> None:
    """In Ollama's words, for an engine of any make."""
    assert refusal(engine_fields, options, facts) == text


@pytest.mark.parametrize("name", ["top_k", "num_keep", "repeat_last_n"])
def test_a_wrong_whole_number_is_refused(name: str) -> None:
    """Samplers that only llama-server has are checked too."""
    text = f'option "{name}" must be of type integer'
    assert refusal(engine_fields, {name: "1"}, LLAMA) == text


@pytest.mark.parametrize("name", ["min_p", "typical_p", "repeat_penalty"])
def test_a_wrong_number_is_refused(name: str) -> None:
    """Samplers that only llama-server has are checked too."""
    text = f'option "{name}" must be of type float32'
    assert refusal(engine_fields, {name: "1"}, LLAMA) == text
