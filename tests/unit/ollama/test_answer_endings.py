"""How an answer ends: exactly one last line, or one error, and never a silent end."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.answer import FailureLine, chat_lines, generate_lines, whole
from app.api.ollama.refusal import Refusal
from app.errors import GatewayError, Kind
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev
from tests.unit.ollama.answering import (
    SHAPES, Lines, answer, broken, chat, done, generate, read, said,
)

CUT = "the engine ended its answer before it was complete"
NOT_JSON = "the engine sent an event that is not JSON"
NO_OBJECT = "the engine sent an event that is no JSON object"
LIMIT = "Context size has been exceeded."

COMPLETE: dict[str, tuple[list[bytes], str]] = {
    "done": ([ev("a"), STOP, DONE], "stop"),
    "no_done": ([ev("a"), STOP], "stop"),
    "no_stop": ([ev("a"), DONE], "stop"),
    "length": ([ev("a"), chunk({}, "length")], "length"),
    "done_without_blank_line": ([ev("a"), STOP, b"data: [DONE]"], "stop"),
    "done_without_space": ([ev("a"), STOP, b"data:[DONE]\n\n"], "stop"),
    "done_with_spaces": ([ev("a"), b"data:  [DONE] \n\n"], "stop"),
    "unended_stop": ([ev("a"), STOP.rstrip()], "stop"),
    "text_behind_done": ([ev("a"), STOP, DONE, ev("b"), STOP], "stop"),
    "error_behind_stop": ([ev("a"), STOP, data({"error": "late"})], "stop"),
    "rubbish_behind_stop": ([ev("a"), STOP, b"data: {\n\n"], "stop"),
}
FAILED: dict[str, tuple[list[bytes], str]] = {
    "end": ([], CUT),
    "reason_of_no_kind": ([data({"choices": [{"delta": {}, "finish_reason": 5}]})], CUT),
    "cut_event": ([ev("b")[:20]], NOT_JSON),
    "cut_field": ([b"da"], CUT),
    "not_json": ([b"data: hello\n\n", STOP, DONE], NOT_JSON),
    "half": ([b'data: {"choices":[\n\n'], NOT_JSON),
    "not_utf8": ([b'data: {"choices":"\xff"}\n\n'], NOT_JSON),
    "html": ([b"data: <html>\n\n"], NOT_JSON),
    "deep": ([b"data: " + b"[" * 100_000 + b"\n\n"], NOT_JSON),
    "many_digits": ([b'data: {"created":' + b"7" * 5000 + b"}\n\n"], NOT_JSON),
    "list": ([b"data: []\n\n"], NO_OBJECT),
    "text": ([b'data: "x"\n\n'], NO_OBJECT),
    "null": ([b"data: null\n\n"], NO_OBJECT),
    "error": ([data({"error": {"code": 500, "message": LIMIT, "type": "server_error"}})], LIMIT),
    "error_text": ([data({"error": LIMIT})], LIMIT),
    "error_then_more": ([data({"error": LIMIT}), ev("b"), STOP, DONE], LIMIT),
    "error_beside_choices": ([data({"choices": [], "error": {"message": LIMIT}})], LIMIT),
    "error_object": ([data({"object": "error", "message": LIMIT, "code": 500})], LIMIT),
    "error_named": ([data({"error": {"message": LIMIT}}, name="error")], LIMIT),
    "error_line": ([b'error: {"code":500,"message":"%b"}\n\n' % LIMIT.encode()], LIMIT),
    "error_line_no_json": ([b"error: boom\n\n"], NOT_JSON),
    "error_refused": ([data({"error": {"code": 400, "message": LIMIT}})], LIMIT),
    "error_without_message": ([data({"error": {"code": 500}})],
                              "the engine reported an error without a word"),
    "error_without_text": ([data({"error": {"message": {"x": 1}}})],
                           "the engine reported an error without a word"),
    "error_number": ([data({"error": 5})], "the engine reported an error without a word"),
}
STATUSES: dict[str, tuple[Any, int | None]] = {
    "400": (400, 400), "404": (404, 404), "422": (422, 422), "429": (429, 429), "499": (499, 499),
    "key_401": (401, None), "key_403": (403, None), "500": (500, None), "503": (503, None),
    "399": (399, None), "text": ("400", None), "fraction": (400.0, None), "none": (None, None),
    "true": (True, None),
}
BOTH = pytest.mark.parametrize("lines", SHAPES.values(), ids=SHAPES)


@pytest.mark.parametrize(("pieces", "reason"), COMPLETE.values(), ids=COMPLETE)
def test_complete_answer_has_one_last_line(pieces: list[bytes], reason: str) -> None:
    """A reason or ``[DONE]`` makes an answer whole; neither has to come with the other."""
    assert chat(*pieces) == [said("a"), done(reason)]


@pytest.mark.parametrize(("rest", "text"), FAILED.values(), ids=FAILED)
def test_failure_midway_is_one_line(rest: list[bytes], text: str) -> None:
    """What was said stays said; one error line follows and nothing else."""
    assert chat(ev("a"), *rest) == [said("a"), {"error": text}]
    assert generate(ev("a"), *rest)[1:] == [{"error": text}]


@BOTH
@pytest.mark.parametrize(("rest", "text"), FAILED.values(), ids=FAILED)
def test_failure_before_the_first_line_is_raised(
    rest: list[bytes], text: str, lines: Lines
) -> None:
    """While nothing has been sent, the client can still get a status."""
    with pytest.raises((GatewayError, Refusal)) as caught:
        next(lines(iter([b": ping\n\n", *rest]), answer()))
    assert str(caught.value) == text


@BOTH
@pytest.mark.parametrize(("code", "status"), STATUSES.values(), ids=STATUSES)
def test_status_of_a_reported_error(code: Any, status: int | None, lines: Lines) -> None:
    """The client's own mistakes keep their status; a refused key is the gateway's and no 401."""
    event = data({"error": {"code": code, "message": "words"}})
    with pytest.raises((GatewayError, Refusal)) as caught:
        next(lines(iter([event]), answer()))
    if status is None:
        assert isinstance(caught.value, GatewayError)
        assert (caught.value.kind, caught.value.message) == (Kind.UPSTREAM_ERROR, "words")
    else:
        assert isinstance(caught.value, Refusal)
        assert (caught.value.status, caught.value.text) == (status, "words")


@BOTH
def test_engine_that_fails_at_once_is_raised_as_it_is(lines: Lines) -> None:
    """The kind decides the status: a silence is a 504 and not a 502."""
    with pytest.raises(GatewayError) as caught:
        next(lines(broken().pieces, answer()))
    assert (caught.value.kind, caught.value.message) == (Kind.ENGINE_TIMEOUT, "silent")


@pytest.mark.parametrize("kind", [Kind.UPSTREAM_ERROR, Kind.ENGINE_TIMEOUT, Kind.CLIENT_GONE])
def test_engine_that_fails_midway_gives_an_error_line(kind: Kind) -> None:
    """Half an event behind the last whole one is dropped, and the failure is told."""
    pieces = broken(ev("1"), ev("2") + ev("3")[:20], kind=kind, text="reset").pieces
    assert read(chat_lines(pieces, answer())) == [said("1"), said("2"), {"error": "reset"}]


@pytest.mark.parametrize("kind", [Kind.UPSTREAM_ERROR, Kind.ENGINE_TIMEOUT])
def test_engine_that_fails_behind_the_end_has_answered(kind: Kind) -> None:
    """Once the reason is said only metrics can be missing."""
    pieces = broken(ev("a"), STOP, kind=kind).pieces
    assert read(chat_lines(pieces, answer())) == [said("a"), done()]


def test_error_line_knows_its_cause() -> None:
    """What is an error line in a stream can still become a status where there is no stream."""
    *_, last = generate_lines(broken(ev("a")).pieces, answer())
    assert isinstance(last, FailureLine)
    assert isinstance(last.cause, GatewayError) and last.cause.kind is Kind.ENGINE_TIMEOUT


@BOTH
def test_whole_answer_raises_what_broke_it(lines: Lines) -> None:
    """Without a stream half an answer is an error, with the kind that it has."""
    with pytest.raises(GatewayError) as caught:
        whole(lines(broken(ev("a")).pieces, answer()))
    assert caught.value.kind is Kind.ENGINE_TIMEOUT


@BOTH
def test_whole_answer_raises_a_refusal(lines: Lines) -> None:
    """An engine may refuse in the midst of its answer too."""
    event = data({"error": {"code": 400, "message": LIMIT}})
    with pytest.raises(Refusal, match=LIMIT):
        whole(lines(iter([ev("a"), event]), answer()))


def test_reader_that_stops_early_closes_the_reply() -> None:
    """Lines that nobody takes any more let go of the pieces at once."""
    closed = []

    def pieces() -> Any:
        try:
            yield ev("a")
            yield ev("b")
        finally:
            closed.append(True)

    lines = chat_lines(pieces(), answer())
    next(lines)
    lines.close()  # type: ignore[attr-defined]
    assert closed == [True]
