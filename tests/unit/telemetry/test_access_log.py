"""The line of a request in both forms, and how it is written."""

from __future__ import annotations

import os

import pytest

from app.errors import Kind
from app.record import Record
from app.telemetry.access_log import FIELDS, AccessLog, as_json, as_text, to_standard_output
from tests.fakes.strict_json import strict_json

NOW = 1_796_000_000.0426


def record(**facts: object) -> Record:
    """The record of a chat that went well, but for these facts."""
    made = Record("POST", request_id="id-1", principal="alice", route="/v1/chat/completions",
                  model="org/name:tag", known=True, engine="http://127.0.0.1:8080", queue=0.0012,
                  load=2.5, prompt_tokens=12, completion_tokens=0, status=200, first_byte=3.25,
                  total=4.0, bytes_out=291)
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def test_json_has_all_fields() -> None:
    """In their order; times in milliseconds."""
    line = as_json(record(), NOW)
    assert line.endswith("\n")
    found = strict_json(line.encode())
    assert tuple(found) == FIELDS
    assert tuple(found.values()) == (
        "2026-11-30T00:53:20.042Z", "INFO", "app.access", "id-1", "alice", "POST",
        "/v1/chat/completions", "org/name:tag", "http://127.0.0.1:8080", 200, "gateway", None, 291,
        1.2, 2500.0, 3250.0, 4000.0, 12, 0)


def test_what_is_not_known_is_null() -> None:
    """Never left out, so that every line has the same fields."""
    found = strict_json(as_json(Record("GET"), NOW).encode())
    unknown = [name for name in FIELDS if found[name] is None]
    assert unknown == ["principal", "route", "model", "engine", "error", "first_byte_ms",
                       "prompt_tokens", "completion_tokens"]


def test_text_says_the_same_to_people() -> None:
    """Without names for what comes first, and without what is not known."""
    assert as_text(record(principal=None), NOW) == (
        "2026-11-30T00:53:20.042Z INFO app.access POST /v1/chat/completions 200 request_id=id-1 "
        "model=org/name:tag engine=http://127.0.0.1:8080 closed_by=gateway bytes_out=291 "
        "queue_ms=1.2 load_ms=2500.0 first_byte_ms=3250.0 total_ms=4000.0 prompt_tokens=12 "
        "completion_tokens=0\n")


@pytest.mark.parametrize("model", ["a b", 'a"b', "a\nb", "a\x1bb", "a\x7fb", "é", "a=b", ""])
def test_text_puts_what_could_mislead_in_quotes(model: str) -> None:
    """As JSON does: whoever splits at spaces finds no field that a client made up."""
    line = as_text(record(model=model), NOW)
    quoted = line[line.index("model=") + 6:line.index(" engine=")]
    assert strict_json(quoted.encode()) == model
    assert line.isascii() and line[:-1].isprintable()


@pytest.mark.parametrize("field", ["principal", "method", "model", "engine", "request_id", "error"])
def test_no_value_breaks_the_line(field: str) -> None:
    """Whatever it is and however long."""
    evil = '"}\n{"level":"ERROR"}\x00\x7f\u2028\ud800' + "x" * 100_000
    for line in (as_json(record(**{field: evil}), NOW), as_text(record(**{field: evil}), NOW)):
        assert line.count("\n") == 1 and line[:-1].isprintable() and len(line) < 3000
    assert strict_json(as_json(record(**{field: evil}), NOW).encode())[field] == evil[:200]


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_request_is_one_write(form: str) -> None:
    """Lines of several threads cannot mix then."""
    written: list[bytes] = []
    AccessLog(form, written.append).note(record())
    [line] = written
    assert line.endswith(b"\n") and (line[:1] == b"{") == (form == "json")


def test_it_goes_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    """Of the process, whatever Python makes of it."""
    to_standard_output(b"a line\n")
    assert capfd.readouterr().out == "a line\n"


def test_a_closed_standard_output_harms_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    """What cannot be written is lost; the request goes on."""
    kept = os.dup(1)
    os.close(1)
    try:
        to_standard_output(b"a line\n")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert capfd.readouterr().out == ""


def test_the_last_word_on_the_end_counts() -> None:
    """An answer whose client has left is that client's, whatever was wrong with it before."""
    made = record()
    made.broke_off(Kind.UPSTREAM_ERROR)
    assert made.closed_by.value == "engine"
    made.abandoned()
    made.end()
    assert (made.closed_by.value, made.status, made.error) == ("client", 499, "client_gone")
