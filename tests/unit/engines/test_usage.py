"""How many tokens an answer tells of, in the words of every API, without parsing it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.call import Reply
from app.engines.usage import Counts, counted, counts, edges
from app.record import Record
from tests.fakes.stream_steps import DONE, STOP, data, ev

USAGE = {"prompt_tokens": 38, "completion_tokens": 40, "total_tokens": 78,
         "prompt_tokens_details": {"cached_tokens": 5}}
TIMINGS = {"cache_n": 5, "prompt_n": 33, "prompt_ms": 959.8, "predicted_n": 40, "predicted_ms": 1.5}
LONG = "word " * 4000
ANSWERS: dict[str, tuple[Any, Counts]] = {
    "chat": ({"choices": [{"message": {"content": LONG}}], "usage": USAGE, "id": "c"}, (38, 40)),
    "llama-server's chat": ({"choices": [], "usage": USAGE, "timings": TIMINGS}, (38, 40)),
    "llama-server's completion": (
        {"content": LONG, "tokens_predicted": 40, "prompt": LONG, "timings": TIMINGS}, (38, 40)),
    "an older one": ({"content": "x", "timings": {"prompt_n": 3, "predicted_n": 4}}, (3, 4)),
    "embeddings": ({"object": "list", "usage": {"prompt_tokens": 7, "total_tokens": 7},
                    "data": [{"embedding": [0.5] * 9000}]}, (7, None)),
    "responses": ({"output": [LONG], "usage": {"input_tokens": 3, "output_tokens": 4,
                   "output_tokens_details": {"reasoning_tokens": 0}}}, (3, 4)),
    "messages": ({"content": [LONG], "usage": {"cache_read_input_tokens": 9, "input_tokens": 3,
                  "output_tokens": 4}}, (3, 4)),
    "none": ({"choices": [{"message": {"content": LONG}}]}, (None, None)),
    "null": ({"choices": [], "usage": None}, (None, None)),
    "what is no count": ({"usage": {"prompt_tokens": 1.5, "completion_tokens": -1,
                          "input_tokens": "3", "output_tokens": 10**30}}, (None, None)),
    "what is quoted": ({"content": json.dumps({"usage": USAGE, "timings": TIMINGS})}, (None, None)),
}


@pytest.mark.parametrize(("answer", "wanted"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["compact", "spaced"])
def test_a_whole_answer_tells(answer: Any, wanted: Counts, separators: tuple[str, str]) -> None:
    """However it is written, and however long it is between its ends."""
    assert counts(edges(json.dumps(answer, separators=separators).encode())) == wanted


STREAMS: dict[str, tuple[list[bytes], Counts]] = {
    "chat": ([ev("a"), STOP, data({"choices": [], "usage": USAGE}), DONE], (38, 40)),
    "llama-server's": ([ev("a"), data({"choices": [], "timings": TIMINGS}), DONE], (38, 40)),
    "null until the end": ([data({"usage": None})] * 9 + [data({"usage": USAGE}), DONE], (38, 40)),
    "more each time": ([data({"usage": {"prompt_tokens": 3, "completion_tokens": n}})
                        for n in range(9)] + [DONE], (3, 8)),
    "messages": ([data({"message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}, "start"),
                  *[ev("a")] * 9, data({"usage": {"output_tokens": 4}}), data({"type": "stop"})],
                 (3, 4)),
    "in one piece": ([ev("a") + STOP + data({"choices": [], "usage": USAGE}) + DONE], (38, 40)),
    "none": ([ev("a")] * 9 + [STOP, DONE], (None, None)),
    "nothing": ([], (None, None)),
}


def taken(pieces: list[bytes], count: int | None = None) -> tuple[list[bytes], Counts]:
    """So many pieces of a stream, and what the record knows when it is closed."""
    closed: list[bool] = []
    record = Record()
    reply = counted(Reply(200, [], iter(pieces), close=lambda: closed.append(True)), record)
    passing: Iterator[bytes] = iter(reply.pieces)
    found = [next(passing) for _ in pieces[:count]]
    reply.close()
    assert closed == [True]
    return found, (record.prompt_tokens, record.completion_tokens)


@pytest.mark.parametrize(("pieces", "wanted"), STREAMS.values(), ids=STREAMS)
def test_a_stream_tells_at_its_end(pieces: list[bytes], wanted: Counts) -> None:
    """Every piece passes as it is."""
    assert taken(pieces) == (pieces, wanted)


def test_who_stops_early_knows_what_came() -> None:
    """Nothing of a stream that was not taken is waited for."""
    pieces = STREAMS["chat"][0]
    assert taken(pieces, 3)[1] == (38, 40)
    assert taken(pieces, 2)[1] == (None, None)


def test_a_whole_reply_stays_as_it_is() -> None:
    """It is counted at once; what several calls of one request tell is added up."""
    record = Record()
    reply = Reply.whole(200, [], json.dumps({"usage": USAGE}).encode())
    assert counted(reply, record) is reply and counted(reply, record) is reply
    assert (record.prompt_tokens, record.completion_tokens) == (76, 80)


@given(st.lists(st.binary(max_size=30), max_size=12))
def test_any_bytes_pass(pieces: list[bytes]) -> None:
    """None is lost, doubled or changed."""
    assert taken(pieces)[0] == pieces
