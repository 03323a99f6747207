"""The official Python client, unmodified, against the gateway with the real engine behind it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Generator, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import requests
from ollama import AsyncClient, ChatResponse, Client, GenerateResponse, ResponseError

from tests.engine.conftest import ALIAS
from tests.engine.engine_process import EngineProcess
from tests.engine.gateway_with_engine import GONE, SHORT, gateway_with_engine
from tests.fakes.processes import wait_until
from tests.server.gateway_process import GatewayProcess

pytestmark = pytest.mark.engine
STORY = "Tell me a long story."
HI = [{"role": "user", "content": STORY}]
FEW = {"num_predict": 6, "temperature": 0}
ENOUGH = {"num_predict": 60, "temperature": 0}
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(16)
METRICS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration",
           "eval_count", "eval_duration")
COLOUR = {"type": "object", "properties": {"sky": {"enum": ["red", "blue"]}}, "required": ["sky"],
          "additionalProperties": False}
CALL = {
    "type": "object", "required": ["name", "arguments"], "properties": {
        "name": {"const": "weather"},
        "arguments": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "enum": ["Rome", "Oslo"]}}}}}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}

Act = Callable[[Client], Any]


@pytest.fixture(scope="module")
def gateway(shared_engine: EngineProcess, demo_home: Path,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """The gateway that the tests here share."""
    directory = tmp_path_factory.mktemp("gateway")
    with gateway_with_engine(shared_engine, demo_home, directory) as process:
        yield process


@pytest.fixture
def client(gateway: GatewayProcess) -> Iterator[Client]:
    """The official client, told nothing but the address."""
    with Client(host=gateway.url) as client:
        yield client


def is_whole(answer: ChatResponse | GenerateResponse) -> None:
    """Assert that this is the end of an answer, with all that clients calculate with."""
    assert answer.done and answer.done_reason in ("stop", "length")
    assert all(answer[name] > 0 for name in METRICS)
    assert answer.created_at
    age = datetime.now(timezone.utc) - datetime.fromisoformat(answer.created_at[:19] + "+00:00")
    assert timedelta(0) <= age < timedelta(minutes=10)


def covers(answer: GenerateResponse) -> None:
    """Assert that the context holds the prompt as the engine got it, and the answer."""
    assert answer.context and answer.prompt_eval_count and answer.eval_count
    # Text is cut into tokens again, which may differ by a few from those that were generated.
    assert abs(len(answer.context) - answer.prompt_eval_count - answer.eval_count) <= 3


def loaded(client: Client) -> dict[str | None, datetime | None]:
    """The models that count as loaded and until when."""
    return {model.model: model.expires_at for model in client.ps().models}


def test_it_lists_models(client: Client) -> None:
    """The model is there with what its file says."""
    [model] = client.list().models
    assert (model.model, model.size) == (ALIAS, 98_362_432)
    assert model.digest and len(model.digest) == 64 and model.modified_at
    assert model.details
    assert (model.details.parameter_size, model.details.quantization_level) == ("134.52M", "Q4_1")


@pytest.mark.parametrize("name", [ALIAS, ALIAS.lower(), SHORT])
def test_it_shows_a_model(client: Client, name: str) -> None:
    """Its context is the engine's, by whichever name it is asked for."""
    shown = client.show(name)
    assert shown.modelinfo and shown.modelinfo["general.architecture"] == "llama"
    assert shown.modelinfo["llama.context_length"] == 4096
    assert shown.capabilities == ["completion"]
    assert shown.template and "<|im_start|>" in shown.template
    assert shown.parameters and shown.parameters.split() == ["num_ctx", "4096"]


@pytest.mark.parametrize("name", [ALIAS, ALIAS.lower(), SHORT, SHORT.upper()])
def test_it_chats(client: Client, name: str) -> None:
    """The answer names the model as the request did, and ends after as many tokens as asked."""
    answer = client.chat(name, HI, options=FEW)
    is_whole(answer)
    assert (answer.model, answer.message.role) == (name, "assistant")
    assert answer.message.content
    assert (answer.done_reason, answer.eval_count) == ("length", 6)


def test_it_streams_a_chat(client: Client) -> None:
    """Piece by piece; only the last one is the end, and it has nothing more to say."""
    *pieces, end = client.chat(SHORT, HI, stream=True, options=FEW)
    assert len(pieces) > 1
    assert all(piece.message.content and not piece.done for piece in pieces)
    assert end.message.content == ""
    is_whole(end)


def test_it_chats_asynchronously(gateway: GatewayProcess) -> None:
    """Several streams at a time, each of them whole."""
    async def ends() -> list[ChatResponse]:
        async with AsyncClient(host=gateway.url) as client:
            return await asyncio.gather(*(end(client) for _ in range(3)))

    async def end(client: AsyncClient) -> ChatResponse:
        pieces = [piece async for piece in await client.chat(SHORT, HI, stream=True, options=FEW)]
        return pieces[-1]

    for answer in asyncio.run(ends()):
        is_whole(answer)


def test_it_generates(client: Client) -> None:
    """The prompt goes through the chat template, and the context holds prompt and answer."""
    answer = client.generate(SHORT, STORY, options=FEW)
    is_whole(answer)
    assert answer.response
    covers(answer)
    *pieces, end = client.generate(SHORT, STORY, stream=True, options=FEW)
    assert all(piece.response and not piece.done for piece in pieces)
    is_whole(end)


def test_it_generates_from_a_raw_prompt(client: Client) -> None:
    """Nothing is put around it, and there is no context."""
    answer = client.generate(SHORT, "Once upon", raw=True, options=FEW)
    is_whole(answer)
    assert answer.response and answer.prompt_eval_count == 2 and answer.context is None


def test_context_carries_a_conversation(client: Client) -> None:
    """Each answer's context is what was before it, its own question and the answer."""
    first = client.generate(SHORT, "My name is Zoltan.", options=FEW)
    assert first.context
    second = client.generate(SHORT, "What is my name?", context=first.context, options=FEW)
    covers(second)
    assert second.context and second.context[:len(first.context)] == first.context


@pytest.mark.parametrize(("inputs", "count"), [("hello", 1), (["hello", "", "a b"], 3), ("", 0)])
def test_it_embeds(client: Client, inputs: str | list[str], count: int) -> None:
    """A vector of length 1 for each input, an empty one among others too."""
    answer = client.embed(SHORT, inputs)
    assert answer.model == SHORT
    assert [len(vector) for vector in answer.embeddings] == [576] * count
    assert all(math.isclose(math.hypot(*vector), 1) for vector in answer.embeddings)


def test_embeddings_are_the_same_both_ways(client: Client) -> None:
    """The older call gives the vector of the newer one; fewer dimensions are its beginning."""
    [vector] = client.embed(SHORT, "hello").embeddings
    assert list(client.embeddings(SHORT, "hello").embedding) == pytest.approx(vector, abs=1e-3)
    [short] = client.embed(SHORT, "hello", dimensions=8).embeddings
    length = math.hypot(*vector[:8])
    assert list(short) == pytest.approx([number / length for number in vector[:8]], abs=1e-3)


def test_format_holds_an_answer_to_a_schema(client: Client) -> None:
    """In a chat, a prompt and a raw prompt."""
    said = [
        client.chat(SHORT, HI, format=COLOUR, options=ENOUGH).message.content,
        client.generate(SHORT, STORY, format=COLOUR, options=ENOUGH).response,
        client.generate(SHORT, STORY, format=COLOUR, raw=True, options=ENOUGH).response]
    for text in said:
        assert json.loads(text or "") in ({"sky": "red"}, {"sky": "blue"})


def test_a_tool_is_called_and_answered(client: Client) -> None:
    """A call that the format forces goes back into the conversation without ids, as many do."""
    call = json.loads(client.chat(
        SHORT, [{"role": "user", "content": "Weather in Rome?"}],
        format=CALL, options=ENOUGH).message.content or "")
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": call}]},
        {"role": "tool", "content": '{"sky": "blue"}'}, {"role": "user", "content": "Thanks."}]
    *_, end = client.chat(SHORT, messages, stream=True, keep_alive=-1, think=False, tools=[],
                          options={"num_ctx": 8192, **FEW})
    is_whole(end)


def test_a_client_that_leaves_frees_the_engine(
        client: Client, shared_engine: EngineProcess) -> None:
    """What it has not read is not generated."""
    def busy() -> bool:
        slots = requests.get(f"{shared_engine.url}/slots", timeout=30).json()
        return any(slot["is_processing"] for slot in slots)

    wait_until(lambda: not busy(), "an idle engine")
    stream = client.chat(SHORT, HI, stream=True, options={"num_predict": 3000})
    next(stream)
    assert busy()
    assert isinstance(stream, Generator)
    stream.close()
    wait_until(lambda: not busy(), "the engine to stop")


LOADS: list[Act] = [
    lambda client: client.generate(SHORT),
    lambda client: client.chat(SHORT),
    lambda client: next(iter(client.generate(SHORT, "", stream=True))),
]
UNLOADS: list[Act] = [
    lambda client: client.generate(SHORT, keep_alive=0),
    lambda client: client.chat(SHORT, [], keep_alive="0s"),
    lambda client: next(iter(client.chat(SHORT, stream=True, keep_alive=0))),
]


@pytest.mark.parametrize(("load", "unload"), list(zip(LOADS, UNLOADS)),
                         ids=["generate", "chat", "stream"])
def test_it_loads_and_unloads(client: Client, load: Act, unload: Act) -> None:
    """A loaded model is in the list of running ones, an unloaded one is not."""
    answer = load(client)
    assert (answer.done, answer.done_reason, answer.eval_count) == (True, "load", None)
    assert ALIAS in loaded(client)
    answer = unload(client)
    assert (answer.done, answer.done_reason) == (True, "unload")
    assert ALIAS not in loaded(client)


@pytest.mark.parametrize(("keep_alive", "minutes"), [
    (None, 5), ("10m", 10), (1800, 30), ("1h30m", 90), (-1, 100 * 365 * 24 * 60)])
def test_it_keeps_a_model(client: Client, keep_alive: float | str | None, minutes: float) -> None:
    """For as long as it says, in seconds or as a duration; for ever is a century."""
    client.generate(SHORT, keep_alive=keep_alive)
    expires = loaded(client)[ALIAS]
    assert expires
    left = (expires - datetime.now(timezone.utc)) / timedelta(minutes=1)
    assert left == pytest.approx(minutes, abs=1, rel=0.01)


def test_an_answer_can_unload(client: Client) -> None:
    """A prompt with a keep_alive of zero is answered, and the model unloaded after it."""
    is_whole(client.chat(SHORT, HI, keep_alive=0, options=FEW))
    wait_until(lambda: ALIAS not in loaded(client), "the model to be unloaded")


def test_it_pulls_what_is_there(client: Client) -> None:
    """At once, in the words of a pull that went well."""
    assert client.pull(SHORT).status == "success"
    said = [progress.status for progress in client.pull(ALIAS, stream=True)]
    assert said == ["pulling manifest", "success"]


ERRORS: list[tuple[Act, int, str]] = [
    (lambda c: c.show("nope"), 404, "model 'nope' not found"),
    (lambda c: c.chat("nope", HI), 404, "model 'nope' not found"),
    (lambda c: list(c.chat("nope", HI, stream=True)), 404, "model 'nope' not found"),
    (lambda c: c.generate("nope", "x"), 404, "model 'nope' not found"),
    (lambda c: c.generate("nope", keep_alive=0), 404, "model 'nope' not found"),
    (lambda c: c.embed("nope", "x"), 404, "model 'nope' not found"),
    (lambda c: c.chat(SHORT, HI, tools=[WEATHER]), 400, '"smol" does not support tools'),
    (lambda c: c.chat(SHORT, HI, think=True), 400, '"smol" does not support thinking'),
    (lambda c: c.generate(SHORT, "a", suffix="b"), 400, '"smol" does not support insert'),
    (lambda c: c.chat(SHORT, [{**HI[0], "images": [PICTURE]}]), 400, "image input is not support"),
    (lambda c: c.generate(SHORT, "word " * 5000), 400, "the prompt is longer than the context"),
    (lambda c: c.embed(SHORT, "word " * 5000, truncate=False), 400, "the input length exceeds"),
    (lambda c: c.pull("nope"), 500, "pull model manifest: file does not exist"),
    (lambda c: list(c.pull("nope", stream=True)), -1, "pull model manifest: file does not exist"),
    (lambda c: c.create("x"), 400, "neither 'from' or 'files' was specified"),
    (lambda c: c.copy("nope", "x"), 404, 'model "nope" not found'),
    (lambda c: c.push(SHORT), 501, "models are not pushed from here"),
    (lambda c: c.delete("nope"), 404, "model 'nope' not found"),
    (lambda c: c.chat(GONE, HI), 502, "no engine is listening"),
    (lambda c: list(c.generate(GONE, "x", stream=True)), 502, "no engine is listening"),
]


@pytest.mark.parametrize(("act", "status", "words"), ERRORS, ids=[
    f"{number}: {words}" for number, (_, _, words) in enumerate(ERRORS)])
def test_it_raises(client: Client, act: Act, status: int, words: str) -> None:
    """The client's own error, with the status and the words; -1 is an error within a stream."""
    with pytest.raises(ResponseError) as caught:
        act(client)
    assert caught.value.status_code == status
    assert words in caught.value.error
