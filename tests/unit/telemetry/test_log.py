"""Log lines: JSON for programs or text for people, one line each, whatever is in them."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import pytest

from app.telemetry import log
from tests.fakes.strict_json import strict_json

EVIL = 'a\n{"level":"ERROR"}\r\x00\x1b[2J\x7f\x9b\u2028\u202e\ud800é"'
FORMS = ["json", "text"]


class Broken(io.StringIO):
    """A stream that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "gone")


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of this test alone."""
    found = logging.getLogger("tests.log")
    found.propagate, found.handlers = False, []
    yield found
    found.propagate, found.handlers = True, []


def lines_of(logger: logging.Logger, form: str, message: str, **more: bool) -> list[str]:
    """What one message becomes."""
    stream = io.StringIO()
    logger.addHandler(log.handler_for(form, stream))
    logger.warning(message, **more)  # type: ignore[arg-type]
    return stream.getvalue().splitlines()


def test_json_has_these_fields(logger: logging.Logger) -> None:
    """Time in UTC, level, who says it and what."""
    [line] = lines_of(logger, "json", "100 % sure")
    found = strict_json(line.encode())
    assert list(found) == ["time", "level", "logger", "message"]
    assert (found["level"], found["logger"], found["message"]) == (
        "WARNING", "tests.log", "100 % sure")
    assert found["time"][10] == "T" and found["time"].endswith("Z")


def test_text_has_the_same(logger: logging.Logger) -> None:
    """In one line that people can read."""
    [line] = lines_of(logger, "text", "100 % sure")
    at, rest = line.split(" ", 1)
    assert rest == "WARNING tests.log: 100 % sure"
    assert len(at) == len("2026-11-30T15:22:00.353Z")


@pytest.mark.parametrize("form", FORMS)
def test_a_message_stays_in_its_line(logger: logging.Logger, form: str) -> None:
    """However it was made up, and no terminal acts on it."""
    [line] = lines_of(logger, form, EVIL)
    assert line.isprintable()
    if form == "json":
        assert strict_json(line.encode())["message"] == EVIL


@pytest.mark.parametrize("form", FORMS)
def test_a_long_message_is_cut(logger: logging.Logger, form: str) -> None:
    """A megabyte in a log helps nobody."""
    [line] = lines_of(logger, form, "x" * 1_000_000)
    assert len(line) < 10_000


def test_a_trace_is_part_of_its_line(logger: logging.Logger) -> None:
    """In JSON; as text it follows the line."""
    try:
        raise ValueError("it failed")
    except ValueError:
        [line] = lines_of(logger, "json", "oh", exc_info=True)
        logger.handlers.clear()
        first, *rest = lines_of(logger, "text", "oh", exc_info=True)
    assert strict_json(line.encode())["trace"].endswith("ValueError: it failed")
    assert first.endswith("tests.log: oh") and rest[-1] == "ValueError: it failed"


@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_be_written_is_lost(
        logger: logging.Logger, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """Nobody is told about it: a full disk ends no request and fills no other log."""
    logger.addHandler(log.handler_for(form, Broken()))
    logger.warning("oh")
    assert capsys.readouterr() == ("", "")


def test_it_is_configured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's own lines from info on, those of libraries from warning on."""
    root, stream = logging.getLogger(), io.StringIO()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(logging.getLogger("app"), "level", logging.NOTSET)
    log.configure("json", stream)
    log.configure("text", sys.stderr)
    logging.getLogger("app.x").info("ours")
    logging.getLogger("library").info("theirs")
    logging.getLogger("library").warning("a warning of theirs")
    found = [strict_json(line.encode())["message"] for line in stream.getvalue().splitlines()]
    assert found == ["ours", "a warning of theirs"]
