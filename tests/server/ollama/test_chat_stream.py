"""A chat's stream: a line for each event, at once, however the engine cuts and wraps its events."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

import pytest

from tests.fakes.raw_client import RawClient, request_bytes
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import DONE, FRAMINGS, SSE, STOP, Gates, chunk, data, ev, stream
from tests.server.calls import JSON, to_bytes
from tests.server.conftest import StartNginx
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import CHAT, TALKER, WORK, chat
from tests.server.ollama.engine_answers import COUNTS, FIRST, TIMINGS, USAGE, streamed
from tests.server.ollama.ndjson import (
    Line, arriving, checked, content, lines, streaming, success,
)

WORD = "北😀"
EVENT = ev(WORD)
ESCAPED = b'data: {"choices":[{"index":0,"delta":{"content":"\\u5317\\ud83d\\ude00"}}]}\n\n'
HAN, SMILE = EVENT.index("北".encode()), EVENT.index("😀".encode())


def single(body: bytes) -> list[bytes]:
    """Each byte for itself."""
    return [body[i:i + 1] for i in range(len(body))]


CUTS = {
    "nowhere": [EVENT],
    "in_both_characters": [EVENT[:HAN + 1], EVENT[HAN + 1:SMILE + 2], EVENT[SMILE + 2:]],
    "everywhere": single(EVENT),
    "everywhere_in_escapes": single(ESCAPED),
    "between_its_line_ends": [EVENT[:-1], EVENT[-1:]],
    "in_the_field_name": [EVENT[:3], EVENT[3:]],
    "before_the_end_of_line": [EVENT[:-2], EVENT[-2:]],
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("pieces", CUTS.values(), ids=CUTS)
def test_text_is_whole_wherever_it_is_cut(
        gateway: GatewayProcess, engine: RawEngine, pieces: list[bytes], framing: str) -> None:
    """No character is lost or replaced, and no line is cut."""
    engine.answer_with(stream(framing, [*pieces, STOP, DONE]))
    answer = chat(gateway.url)
    said, last = success(answer)
    assert content(said) == WORD and len(said) == 1
    assert "\ufffd" not in answer.body.decode() and last["done_reason"] == "stop"


def spaceless(event: bytes) -> bytes:
    """The event without the space behind its colon."""
    return event.replace(b"data: ", b"data:", 1)


NOISE = [b": ping\n\n", ev("a"), b":\n", b": x\n", b"event: message\n", b"id: 7\n", b"retry: 10\n",
         spaceless(ev("b")), STOP, DONE]
FRAMED: dict[str, tuple[list[bytes], list[str]]] = {
    "comments_and_fields": (NOISE, ["a", "b"]),
    "crlf": ([piece.replace(b"\n", b"\r\n") for piece in NOISE], ["a", "b"]),
    "cr": ([piece.replace(b"\n", b"\r") for piece in NOISE], ["a", "b"]),
    "cut_everywhere": (single(b"".join(NOISE)), ["a", "b"]),
    "crlf_cut_everywhere": (single(b"".join(NOISE).replace(b"\n", b"\r\n")), ["a", "b"]),
    "all_in_one": ([b"".join(NOISE)], ["a", "b"]),
    "event_over_two_data_lines": (
        [b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"a"}}]}\n\n', STOP, DONE],
        ["a"]),
    "unknown_field": ([b"what: ever\ndata\n\n", ev("a"), STOP, DONE], ["a"]),
    "byte_order_mark": ([b"\xef\xbb\xbf", ev("a"), STOP, DONE], ["a"]),
    "only_the_end": ([STOP, DONE], []),
}


@pytest.mark.parametrize(("pieces", "texts"), FRAMED.values(), ids=FRAMED)
def test_only_events_are_lines(gateway: GatewayProcess, engine: RawEngine, pieces: list[bytes],
                               texts: list[str]) -> None:
    """One for each event with text; comments, pings and field names are none."""
    engine.answer_with(stream("chunked", pieces))
    said, last = success(chat(gateway.url))
    assert [line["message"]["content"] for line in said] == texts
    assert last["message"] == {"role": "assistant", "content": ""}


TOKENS = {"prompt_tokens": 3, "completion_tokens": 2}
USED = data({"choices": [], "usage": TOKENS})
ENDED: dict[str, list[bytes]] = {
    "usage_behind_the_end": [
        data({"choices": []}), ev("a"), data({"object": "chat.completion.chunk"}), chunk({}),
        chunk({"content": None}), STOP, USED, DONE],
    "usage_before_the_end": [ev("a"), USED, STOP, DONE],
    "usage_in_the_end": [ev("a"), data({"choices": [
        {"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": TOKENS}), DONE],
    "usage_null_until_then": [data({"choices": [
        {"index": 0, "delta": {"content": "a"}}], "usage": None}), STOP, USED, DONE],
    "usage_in_every_event": [data({"choices": [
        {"index": 0, "delta": {"content": "a"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1}}), STOP, USED, DONE],
    "end_with_the_text": [chunk({"content": "a"}, "stop"), USED, DONE],
    "choices_null": [data({"choices": None}), ev("a"), STOP, USED, DONE],
    "delta_null": [data({"choices": [{"index": 0, "delta": None}]}), ev("a"), STOP, USED, DONE],
    "delta_missing": [data({"choices": [{"index": 0}]}), ev("a"), STOP, USED, DONE],
    "content_of_other_types": [chunk({"content": 5}), chunk({"content": {}}), ev("a"), STOP, USED,
                               DONE],
    "choices_of_other_types": [data({"choices": "x"}), data({"choices": [None, 5]}), ev("a"), STOP,
                               USED, DONE],
    "another_choice": [chunk({"content": "x"}, index=1), ev("a"), chunk({}, "stop", index=1), STOP,
                       USED, DONE],
    "fields_of_no_interest": [data({"choices": [
        {"index": 0, "delta": {"content": "a", "refusal": None, "role": "assistant"},
         "type": "x", "error": None}], "error": None, "type": "y"}), STOP, USED, DONE],
    "progress": [data({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}],
                       "prompt_progress": {"total": 9, "processed": 3}}), ev("a"), STOP, USED,
                 DONE],
}


@pytest.mark.parametrize("pieces", ENDED.values(), ids=ENDED)
def test_events_without_text_are_passed_over(
        gateway: GatewayProcess, engine: RawEngine, pieces: list[bytes]) -> None:
    """Whatever they lack; the counts are found wherever they stand."""
    engine.answer_with(stream("chunked", pieces))
    said, last = success(chat(gateway.url))
    assert [line["message"]["content"] for line in said] == ["a"]
    assert (last["prompt_eval_count"], last["eval_count"]) == (3, 2)
    assert last["done_reason"] == "stop"


@pytest.mark.parametrize(("word", "reason"), [
    ("stop", "stop"), ("length", "length"), ("tool_calls", "stop"), ("function_call", "stop"),
    ("content_filter", "stop"), ("eos_token", "stop")])
def test_two_reasons_to_end(
        gateway: GatewayProcess, engine: RawEngine, word: str, reason: str) -> None:
    """Ollama knows no others."""
    engine.answer_with(stream("chunked", [ev("a"), chunk({}, word), DONE]))
    assert success(chat(gateway.url))[1]["done_reason"] == reason


def test_metrics_are_the_engines(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Of its timings, in nanoseconds, what the cache spared included in the prompt's tokens."""
    engine.answer_with(stream("chunked", [ev("a"), STOP, COUNTS, DONE]))
    last = success(chat(gateway.url))[1]
    assert last["prompt_eval_count"] == TIMINGS["cache_n"] + TIMINGS["prompt_n"]
    assert last["eval_count"] == TIMINGS["predicted_n"] == USAGE["completion_tokens"]
    assert (last["prompt_eval_duration"], last["eval_duration"]) == (12_500_000, 40_250_000)


def of_piece(piece: bytes) -> Line:
    """The one line of a chunk."""
    assert piece.count(b"\n") == 1 and piece.endswith(b"\n"), piece
    return checked(piece[:-1])


@pytest.mark.parametrize("framing", FRAMINGS)
def test_lines_arrive_as_events_do(
        gateway: GatewayProcess, engine: RawEngine, framing: str) -> None:
    """Each before the next event was sent, whether chunked, with a length, or with neither."""
    gates = Gates(framing, [ev("1"), ev("2"), ev("3"), STOP + DONE])
    engine.answer_with(gates.script)
    with RawClient(gateway.url) as client:
        answer = streaming(client.request("POST", CHAT, JSON, to_bytes(WORK[CHAT])))
        for place, text in enumerate("123"):
            assert of_piece(next(answer.pieces()))["message"]["content"] == text
            gates.seen(place)
        assert of_piece(next(answer.pieces()))["done"] is True
        gates.seen(3)
        assert list(answer.pieces()) == [] and not answer.cut


@pytest.mark.nginx
def test_lines_arrive_through_nginx(patient: GatewayProcess, engine: RawEngine,
                                    start_nginx: StartNginx) -> None:
    """One with nothing but proxy_pass, which holds back what it is not told to let go."""
    gates = Gates("chunked", [ev("1"), ev("2"), STOP + DONE])
    engine.answer_with(gates.script)
    proxy = start_nginx(f"location / {{ proxy_pass {patient.url}; }}")
    with RawClient(proxy.url) as client:
        answer = client.request("POST", CHAT, JSON, to_bytes(WORK[CHAT]))
        assert answer.header("Content-Type") == "application/x-ndjson"
        found = _lines_of(answer.pieces())
        for place, text in enumerate("12"):
            assert checked(next(found))["message"]["content"] == text
            gates.seen(place)
        assert checked(next(found))["done"] is True
        gates.seen(2)
        assert list(found) == []


def _lines_of(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines, however nginx cuts them."""
    rest = b""
    for piece in pieces:
        *ended, rest = (rest + piece).split(b"\n")
        yield from ended


def test_buffering_is_forbidden_once(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Also where the engine has its own opinion of it, which is not passed on."""
    headers = [*SSE, ("X-Accel-Buffering", "yes"), ("Cache-Control", "max-age=9")]
    engine.answer_with(stream("chunked", [ev("a"), STOP, DONE], headers))
    answer = chat(gateway.url)
    assert (answer.all("X-Accel-Buffering"), answer.all("Content-Length")) == (["no"], [])
    assert answer.all("Cache-Control") == ["no-cache"] and len(lines(answer)) == 2


def test_the_answer_has_the_name_that_was_asked_for(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Whatever the engine calls the model, on every line."""
    engine.answer_with(streamed(ev("a"), ev("b")))
    name = TALKER.upper()
    assert {line["model"] for line in lines(chat(gateway.url, model=name))} == {name}


def test_no_line_is_longer_than_clients_read(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A huge event is several lines; nothing of it is lost."""
    text = json.dumps(WORD * 20_000)
    engine.answer_with(streamed(ev(text)))
    answer = chat(gateway.url)
    said, _ = success(answer)
    assert content(said) == text
    assert max(map(len, answer.body.split(b"\n"))) < 100_000


def test_the_first_chunk_alone_is_no_line(gateway: GatewayProcess, engine: RawEngine) -> None:
    """llama-server begins with a role and no text; the client waits for the first word."""
    gates = Gates("chunked", [FIRST + ev("a"), STOP + DONE])
    engine.answer_with(gates.script)
    with RawClient(gateway.url) as client:
        found = arriving(client.request("POST", CHAT, JSON, to_bytes(WORK[CHAT])))
        assert next(found)["message"]["content"] == "a"
        gates.seen(0)
        gates.seen(1)
        assert [line["done"] for line in found] == [True]


@pytest.mark.parametrize("kind", [
    "text/event-stream; charset=utf-8", "Text/Event-Stream", "text/event-stream;charset=UTF-8"])
def test_a_stream_is_known_by_its_type(
        gateway: GatewayProcess, engine: RawEngine, kind: str) -> None:
    """However it is spelt."""
    engine.answer_with(stream("chunked", [ev("a"), STOP, DONE], [("Content-Type", kind)]))
    assert content(success(chat(gateway.url))[0]) == "a"


def test_a_packed_stream_is_unpacked(gateway: GatewayProcess, engine: RawEngine) -> None:
    """An engine that packs without being asked: its events are lines, nothing is packed again."""
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)
              for event in (ev("a"), ev("北"), STOP + DONE)]
    headers = [*SSE, ("Content-Encoding", "gzip")]
    engine.answer_with(stream("chunked", [*pieces, packer.flush()], headers))
    answer = chat(gateway.url)
    assert content(success(answer)[0]) == "a北" and not answer.all("Content-Encoding")


def test_a_client_of_old_gets_its_lines(gateway: GatewayProcess, engine: RawEngine) -> None:
    """HTTP/1.0 knows no chunks: the body ends with the connection."""
    gates = Gates("chunked", [ev("1"), STOP + DONE])
    engine.answer_with(gates.script)
    with RawClient(gateway.url) as client:
        request = request_bytes("POST", CHAT, JSON, to_bytes(WORK[CHAT]))
        client.send(request.replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        answer = client.answer()
        assert not answer.all("Transfer-Encoding") and not answer.all("Content-Length")
        found = arriving(answer)
        assert next(found)["message"]["content"] == "1"
        gates.seen(0)
        gates.seen(1)
        assert [line["done"] for line in found] == [True]
