"""The calls of the lesson, each against two of its fake engines, with its exact answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from tests.fakes.raw_client import RawAnswer
from tests.fakes.registry_home import RegistryHome, gguf
from tests.server.calls import CHAT, SHOW, get, post
from tests.server.gateway_process import ROOT, GatewayProcess, free_port

CODER = "example-org/Tiny-Coder-GGUF:F32"
TALKER = "example-org/Tiny-Chat-GGUF:F32"
SIZE = 328377376
SHA = "5239405616616846448e0fd1b11e1807bc5693a20f9f04e8fd57853254b1e7b7"
INFO = {
    "general.architecture": "llama", "general.name": "tiny-random-llama",
    "llama.context_length": 4096, "llama.embedding_length": 256, "llama.block_count": 4,
    "llama.feed_forward_length": 704, "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2, "llama.rope.dimension_count": 32,
    "llama.attention.layer_norm_rms_epsilon": 1e-05, "llama.rope.freq_base": 500000.0,
    "general.file_type": 0, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2",
}
DETAILS = {"parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
           "parameter_size": "", "quantization_level": "F32",
           "context_length": 4096, "embedding_length": 256}
META = (b'"context_length":4096,"max_model_len":4096,'
        b'"meta":{"n_ctx_train":4096,"size":328377376,"ftype":"F32"},'
        b'"status":{"value":"unloaded"}')
ENGINE_TYPE = "application/json; charset=utf-8"


class FakeEngine:
    """The command for people, run as people run it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FakeEngine:
        command = [str(ROOT / "scripts/fake-engine"), str(self.port), self.name]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        said = self._process.stderr.readline().decode()
        assert said == f"fake engine {self.name} listens on {self.url}\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> RegistryHome:
    """Two models of 328,377,376 bytes (nearly all of them a hole) and an unfinished pull."""
    home = RegistryHome(tmp_path_factory.mktemp("lesson") / "home")
    data = gguf({**INFO, "tokenizer.ggml.tokens": ["a", "bc"]})
    for name, file, pulled in ((CODER, "Tiny-Coder-F32.gguf", "2026-10-01T09:30:00Z"),
                               (TALKER, "Tiny-Chat-F32.gguf", "2026-10-02T14:00:00Z")):
        listed = [{"path": file, "size": SIZE, "sha256": SHA}]
        directory = home.add_files(name, {file: data}, files=listed, pulledAt=pulled)
        with (directory / file).open("r+b") as blob:
            blob.truncate(SIZE)
    (home.models / "example-org--Half-Pulled--Q4_0").mkdir()
    return home


class Lesson:
    """The two engines of the lesson and the gateway of its `demo.yml`."""

    def __init__(self, gateway: GatewayProcess, beta: FakeEngine) -> None:
        self.url = gateway.url
        self.beta = beta

    def chat(self, **fields: Any) -> RawAnswer:
        """POST these fields as a chat."""
        return post(self.url, CHAT, fields)

    def say(self, model: str, content: str, **fields: Any) -> RawAnswer:
        """One user message to `model`."""
        return self.chat(model=model, messages=[{"role": "user", "content": content}], **fields)


@pytest.fixture(scope="module")
def lesson(home: RegistryHome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lesson]:
    """All of the lesson, running."""
    with FakeEngine("alpha") as alpha, FakeEngine("beta") as beta:
        settings = {"loop": {"home": str(home.path), "read-timeout": "1s", "engines": [
            {"url": alpha.url, "models": [CODER]}, {"url": beta.url, "models": [TALKER]}]}}
        with GatewayProcess(tmp_path_factory.mktemp("demo"), settings) as gateway:
            yield Lesson(gateway, beta)


def heard(name: str, text: str, fields: str = '"model","messages"') -> bytes:
    """The answer of a fake engine."""
    return (
        '{"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"'
        f'{name}","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant",'
        f'"content":"{name} heard: {text}"}}}}],"usage":{{"prompt_tokens":7,'
        f'"completion_tokens":5,"total_tokens":12}},"received_fields":[{fields}]}}').encode()


def problem(message: str, kind: str, param: str | None, code: str | None) -> bytes:
    """The gateway's own error, byte for byte."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return compact({"error": error})


def compact(value: Any) -> bytes:
    """One line of JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def is_answer(answer: RawAnswer, status: int, body: bytes, kind: str = "application/json") -> None:
    """Check status, body and content type, and that the length is told."""
    assert answer.body == body
    assert (answer.status, answer.header("Content-Type")) == (status, kind)
    assert answer.header("Content-Length") == str(len(body))


def test_models_come_from_the_registry(lesson: Lesson) -> None:
    """Example 5: two models by name, the unfinished pull is none."""
    is_answer(get(lesson.url, "/v1/models"), 200, (
        b'{"object":"list","data":[{"id":"example-org/Tiny-Chat-GGUF:F32","object":"model",'
        b'"created":1790949600,"owned_by":"loop",%b},{"id":"example-org/Tiny-Coder-GGUF:F32",'
        b'"object":"model","created":1790847000,"owned_by":"loop",%b}]}' % (META, META)))


def test_broken_json_has_the_one_error_shape(lesson: Lesson) -> None:
    """Example 6: a body that is no JSON gets the gateway's envelope."""
    is_answer(post(lesson.url, CHAT, b"{not json"), 400, problem(
        "the request body is not valid JSON", "invalid_request_error", None, None))


def test_a_chat_gets_the_engines_bytes(lesson: Lesson) -> None:
    """Example 7: the answer is the engine's, its length and its content type too."""
    body = heard("alpha", "hello")
    assert len(body) == 302
    is_answer(lesson.say(CODER, "hello"), 200, body, ENGINE_TYPE)


def test_the_model_field_chooses_the_engine(lesson: Lesson) -> None:
    """Example 8: the second model is answered by the second engine."""
    is_answer(lesson.say(TALKER, "hello"), 200, heard("beta", "hello"), ENGINE_TYPE)


def test_an_unknown_model_is_a_404(lesson: Lesson) -> None:
    """Example 8: a name that no engine serves."""
    is_answer(lesson.say("nope", "x"), 404, problem(
        "the model 'nope' does not exist", "invalid_request_error", "model", "model_not_found"))


def test_unknown_fields_reach_the_engine(lesson: Lesson) -> None:
    """Example 9: extension fields arrive, in their order."""
    fields = '"model","messages","top_k","cache_prompt","seed"'
    answer = lesson.say(TALKER, "hello", top_k=40, cache_prompt=True, seed=7)
    is_answer(answer, 200, heard("beta", "hello", fields), ENGINE_TYPE)


@pytest.mark.parametrize("status", [400, 503])
def test_an_engines_4xx_and_503_pass_unchanged(lesson: Lesson, status: int) -> None:
    """Examples 10 and 11: the client's faults and "not ready" keep the engine's own words."""
    body = (f'{{"error":{{"code":{status},"message":"fake engine returned {status}",'
            '"type":"server_error"}}').encode()
    assert len(body) == 81
    is_answer(lesson.say(CODER, f"status:{status}"), status, body, ENGINE_TYPE)


def test_an_engines_500_is_a_502(lesson: Lesson) -> None:
    """Example 11: other 5xx become the gateway's own 502."""
    is_answer(lesson.say(CODER, "status:500"), 502, problem(
        "the engine answered 500: fake engine returned 500", "server_error", None,
        "upstream_error"))


def test_a_slow_engine_is_a_504(lesson: Lesson) -> None:
    """Example 12: three seconds are longer than the read timeout of one."""
    is_answer(lesson.say(CODER, "sleep:3000"), 504, problem(
        "the engine did not answer within 1000 ms", "server_error", None, "engine_timeout"))


USER = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(("fields", "param", "message"), [
    ({"messages": USER}, "model", "'model' must not be blank"),
    ({"model": CODER, "messages": []}, "messages", "'messages' must not be empty"),
    ({"model": CODER, "messages": [{"role": "robot", "content": "x"}]}, "messages[0].role",
     "'messages[0].role' must match \"system|developer|user|assistant|tool\""),
    ({"model": CODER, "messages": USER, "temperature": 3}, "temperature",
     "'temperature' must be less than or equal to 2.0"),
    ({"model": CODER, "messages": USER, "max_tokens": 0}, "max_tokens",
     "'max_tokens' must be greater than 0"),
    ({"model": CODER, "messages": "hi"}, "messages", "'messages' has the wrong JSON type"),
    ({"model": CODER, "messages": USER, "stream": "yes"}, "stream",
     "'stream' has the wrong JSON type"),
])
def test_a_wrong_field_is_named(
        lesson: Lesson, fields: dict[str, Any], param: str, message: str) -> None:
    """Example 13: the first problem, with the path of its field."""
    is_answer(lesson.chat(**fields), 400,
              problem(message, "invalid_request_error", param, None))


def test_tags_list_the_registry(lesson: Lesson) -> None:
    """Example 14: what the manifest and the GGUF file say, on one line."""
    models = [{"name": name, "model": name, "modified_at": pulled, "size": SIZE, "digest": SHA,
               "details": DETAILS, "capabilities": ["completion"]}
              for name, pulled in ((TALKER, "2026-10-02T14:00:00Z"),
                                   (CODER, "2026-10-01T09:30:00Z"))]
    is_answer(get(lesson.url, "/api/tags"), 200, compact({"models": models}))


def test_show_gives_the_models_metadata(lesson: Lesson) -> None:
    """Example 15: details, the scalar keys of the file in its order, the time of the pull."""
    answer = post(lesson.url, SHOW, {"model": CODER})
    assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
    shown = answer.json()
    assert shown["details"] == DETAILS
    assert shown["model_info"] == INFO
    assert list(shown["model_info"]) == list(INFO)
    assert shown["modified_at"] == "2026-10-01T09:30:00Z"


@pytest.mark.parametrize(("body", "status", "message"), [
    ({"model": "nope"}, 404, "model 'nope' not found"), ({}, 400, "model is required")])
def test_show_refuses_in_ollamas_shape(
        lesson: Lesson, body: dict[str, str], status: int, message: str) -> None:
    """Example 15: an unknown and a missing name."""
    is_answer(post(lesson.url, SHOW, body), status, compact({"error": message}))


def test_ps_lists_a_model_after_its_use(lesson: Lesson) -> None:
    """Example 16: a chat makes a model count as loaded for five minutes."""
    before = datetime.now(timezone.utc)
    assert lesson.say(CODER, "hello").status == 200
    answer = get(lesson.url, "/api/ps")
    [running] = [model for model in answer.json()["models"] if model["name"] == CODER]
    expires = datetime.fromisoformat(running.pop("expires_at").replace("Z", "+00:00"))
    assert 299 <= (expires - before).total_seconds() <= 330
    expected = {"name": CODER, "model": CODER, "size": SIZE, "digest": SHA, "details": DETAILS,
                "size_vram": 0, "context_length": 4096}
    assert list(running) == list(expected) and running == expected


def test_a_killed_engine_is_a_502_until_it_is_back(lesson: Lesson) -> None:
    """Example 12: nothing listens where beta was; started again, it is used again."""
    lesson.beta.__exit__()
    try:
        answer = lesson.say(TALKER, "hello")
    finally:
        lesson.beta.__enter__()
    is_answer(answer, 502, problem(f"no engine is listening at {lesson.beta.url}",
                                   "server_error", None, "engine_unavailable"))
    is_answer(lesson.say(TALKER, "hello"), 200, heard("beta", "hello"), ENGINE_TYPE)
