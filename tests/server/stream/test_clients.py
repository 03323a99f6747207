"""The official OpenAI and Anthropic clients read streams and errors for what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI

from tests.fakes.engine_steps import JSON_TYPE, chunks, close, reply, send, silence
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev, head_for, stream
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import COMPLETIONS, MESSAGES, RESPONSES, Api
from tests.server.stream.conftest import settings_for

HI: Any = [{"role": "user", "content": "hi"}]
LIMIT = 200_000


@pytest.fixture(scope="module")
def served(shared_engine: RawEngine, stream_home: RegistryHome,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with small limits."""
    settings = settings_for(shared_engine, stream_home, {"max-body": LIMIT},
                            **{"read-timeout": "400ms"})
    with GatewayProcess(tmp_path_factory.mktemp("clients"), settings) as process:
        yield process


@pytest.fixture
def oai(served: GatewayProcess) -> Iterator[OpenAI]:
    """OpenAI's client, which tries everything once."""
    with OpenAI(base_url=f"{served.url}/v1", api_key="sk-none", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(served: GatewayProcess) -> Iterator[Anthropic]:
    """Anthropic's client, which tries everything once."""
    with Anthropic(base_url=served.url, api_key="sk-none", max_retries=0) as client:
        yield client


def breaking_off(api: Api) -> list[Step]:
    """Two events, then the connection breaks."""
    return [send(head_for("chunked")), chunks(*api.events(2)), close]


def test_openai_streams_a_chat(oai: OpenAI, engine: RawEngine) -> None:
    """Every piece of text, and the end."""
    engine.answer_with(stream("chunked", [b": ping\n\n", *map(ev, ["北", "京", " 😀"]), STOP, DONE]))
    with oai.chat.completions.create(model="m", messages=HI, stream=True) as events:
        found = [event.choices[0] for event in events]
    assert "".join(choice.delta.content or "" for choice in found) == "北京 😀"
    assert found[-1].finish_reason == "stop"


def test_openai_streams_tools(oai: OpenAI, engine: RawEngine) -> None:
    """A call whose arguments come in pieces."""
    pieces = [chunk({"tool_calls": [{"index": 0, "id": "t", "type": "function", "function": {
                  "name": "f", "arguments": ""}}]}),
              *(chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
                for part in ('{"ci', 'ty":"北', '京"}')),
              chunk({}, "tool_calls"), DONE]
    engine.answer_with(stream("chunked", pieces))
    with oai.chat.completions.create(model="m", messages=HI, stream=True) as events:
        calls = [call for event in events for call in event.choices[0].delta.tool_calls or []]
    assert "".join(str(call.function.arguments) for call in calls if call.function) == \
        '{"city":"北京"}'


def test_openai_streams_completions_and_responses(oai: OpenAI, engine: RawEngine) -> None:
    """The older and the newer API."""
    engine.answer_with(stream("chunked", [*COMPLETIONS.events(3), COMPLETIONS.end]))
    with oai.completions.create(model="m", prompt="hi", stream=True) as events:
        assert [event.choices[0].text for event in events] == ["1", "2", "3", ""]
    engine.answer_with(stream("chunked", [*RESPONSES.events(3), RESPONSES.end]))
    with oai.responses.create(model="m", input="hi", stream=True) as answers:
        kinds = [event.type for event in answers]
    assert kinds == ["response.output_text.delta"] * 3 + ["response.completed"]


@pytest.mark.parametrize("kind", ["chat", "completions", "responses"])
def test_openai_raises_for_an_error_in_a_stream(
        oai: OpenAI, engine: RawEngine, kind: str) -> None:
    """After the events before it, an APIError with the gateway's message and code."""
    asked: dict[str, Any] = {
        "chat": lambda: oai.chat.completions.create(model="m", messages=HI, stream=True),
        "completions": lambda: oai.completions.create(model="m", prompt="hi", stream=True),
        "responses": lambda: oai.responses.create(model="m", input="hi", stream=True)}
    events = {"chat": [ev("1"), ev("2")], "completions": COMPLETIONS.events(2),
              "responses": RESPONSES.events(2)}[kind]
    engine.answer_with([send(head_for("chunked")), chunks(*events), close])
    found = []
    with pytest.raises(openai.APIError) as caught, asked[kind]() as answers:
        for event in answers:
            found.append(event)
    assert len(found) == 2
    assert "the connection to the engine failed" in caught.value.message
    assert (caught.value.code, caught.value.type) == ("upstream_error", "server_error")
    assert not isinstance(caught.value, openai.APIConnectionError)


def test_openai_raises_for_a_silent_engine(oai: OpenAI, engine: RawEngine) -> None:
    """One that stalls in mid-stream."""
    engine.answer_with([send(head_for("chunked")), chunks(ev("1")), silence])
    with pytest.raises(openai.APIError) as caught:
        with oai.chat.completions.create(model="m", messages=HI, stream=True) as events:
            list(events)
    assert caught.value.code == "engine_timeout"


def test_openai_transcribes(oai: OpenAI, engine: RawEngine) -> None:
    """Its form reaches the engine with the registry's name in it."""
    engine.answer_with(reply(200, b'{"text":"hello"}'))
    sound = ("a.wav", b"RIFF\r\n\x00\xff" * 1000, "audio/wav")
    assert oai.audio.transcriptions.create(model="short", file=sound).text == "hello"
    body = engine.requests[0].body
    assert b'name="model"\r\n\r\nm\r\n' in body and sound[1] in body


def test_anthropic_reads_a_whole_message(claude: Anthropic, engine: RawEngine) -> None:
    """As its own type."""
    engine.answer_with(reply(200, MESSAGES.whole))
    message = claude.messages.create(model="m", max_tokens=5, messages=HI)
    assert (message.content[0].type, message.stop_reason) == ("text", "end_turn")


def test_anthropic_streams(claude: Anthropic, engine: RawEngine) -> None:
    """Every piece of text, and the message that they make."""
    engine.answer_with(stream("chunked", [*MESSAGES.events(3), data({"type": "ping"}, "ping"),
                                          MESSAGES.end]))
    with claude.messages.stream(model="m", max_tokens=5, messages=HI) as events:
        assert "".join(events.text_stream) == "123"
        assert events.get_final_message().stop_reason == "end_turn"


@pytest.mark.parametrize("steps", [[close], [silence]], ids=["close", "hang"])
def test_anthropic_raises_for_an_error_in_a_stream(
        claude: Anthropic, engine: RawEngine, steps: list[Step]) -> None:
    """After the text before it."""
    engine.answer_with([*breaking_off(MESSAGES)[:-1], *steps])
    seen = []
    with pytest.raises(anthropic.APIStatusError) as caught:
        with claude.messages.stream(model="m", max_tokens=5, messages=HI) as events:
            for text in events.text_stream:
                seen.append(text)
    assert seen == ["1", "2"]
    assert "the engine" in caught.value.message


def said(status: int, kind: str) -> list[Step]:
    """An engine that answers in Anthropic's shape."""
    return [reply(status, b'{"type":"error","error":{"type":"%b","message":"own"}}' % kind.encode(),
                  [*JSON_TYPE, ("Retry-After", "1")])]


Fault = tuple[list[Step], dict[str, Any], type[anthropic.APIStatusError], int, str]
FAULTS: dict[str, Fault] = {
    "400_engine": (said(400, "invalid_request_error"), {}, anthropic.BadRequestError, 400, "own"),
    "400_gateway": ([], {"extra_body": {"stream": "x"}}, anthropic.BadRequestError, 400, "stream"),
    "401": (said(401, "authentication_error"), {}, anthropic.AuthenticationError, 401, "own"),
    "403": (said(403, "permission_error"), {}, anthropic.PermissionDeniedError, 403, "own"),
    "404": ([], {"model": "nope"}, anthropic.NotFoundError, 404, "'nope' does not exist"),
    "413": ([], {"system": "x" * LIMIT}, anthropic.APIStatusError, 413, "larger than"),
    "429": (said(429, "rate_limit_error"), {}, anthropic.RateLimitError, 429, "own"),
    "502_dead": ([], {"model": "gone"}, anthropic.InternalServerError, 502, "no engine is"),
    "502_500": (said(500, "api_error"), {}, anthropic.InternalServerError, 502, "answered 500"),
    "503": (said(503, "overloaded_error"), {}, anthropic.InternalServerError, 503, "own"),
    "504": ([silence], {}, anthropic.InternalServerError, 504, "did not answer"),
}


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("script", "fields", "kind", "status", "text"), FAULTS.values(),
                         ids=FAULTS)
def test_anthropic_raises_by_status(
        claude: Anthropic, engine: RawEngine, script: list[Step], fields: dict[str, Any],
        kind: type[anthropic.APIStatusError], status: int, text: str, streaming: bool) -> None:
    """Its own class for each status, with the error's type and message."""
    engine.answer_with(script or reply())
    asked = {"model": "m", "max_tokens": 5, "messages": HI, "stream": streaming, **fields}
    with pytest.raises(kind) as caught:
        claude.messages.create(**asked)
    assert caught.value.status_code == status
    assert text in caught.value.message
    assert caught.value.body["type"] == "error"


def test_anthropic_counts_tokens(claude: Anthropic, engine: RawEngine) -> None:
    """The other endpoint below /v1/messages."""
    engine.answer_with(reply(200, b'{"input_tokens":7}'))
    assert claude.messages.count_tokens(model="m", messages=HI).input_tokens == 7
    assert engine.requests[0].path == "/v1/messages/count_tokens"
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.count_tokens(model="nope", messages=HI)
