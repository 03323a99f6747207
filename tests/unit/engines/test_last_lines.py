"""The last lines of an engine's output, whatever it writes."""

from __future__ import annotations

import tracemalloc

import pytest

from app.engines.last_lines import LINES, LONGEST, LastLines


def after(*pieces: bytes) -> list[str]:
    """The lines after these pieces have been written."""
    lines = LastLines()
    for piece in pieces:
        lines.add(piece)
    return lines.all()


@pytest.mark.parametrize(("pieces", "lines"), [
    ([], []),
    ([b"one\ntwo\n"], ["one", "two"]),
    ([b"one\ntw", b"o"], ["one", "two"]),
    ([b"on", b"e", b"\n", b"\ntwo\r", b"\nthree"], ["one", "two", "three"]),
    ([b"\n \n\t\none\n\n \n"], ["one"]),
    ([b"10%\r20%\r", b"30%"], ["10%", "20%", "30%"]),
    ([b"\x1b[1;31merror:\x1b[0m no room\x1b[K\n\x1b[0m\n"], ["error: no room"]),
    ([b"\x1b]0;title\x07a\tb\x00c\x7f\n"], ["a b c"]),
    ([b"  caf\xc3", b"\xa9 \xff\n"], ["caf\u00e9 \ufffd"]),
])
def test_lines_are_fit_to_be_shown(pieces: list[bytes], lines: list[str]) -> None:
    """Without blank ones, escape sequences and what cannot be printed; cut anywhere."""
    assert after(*pieces) == lines


def test_the_last_ones_are_kept() -> None:
    """Among them the one whose end has not come; blank ones push none out."""
    written = b"".join(b"%d\n" % number for number in range(1000)) + b"\n \n" * 1000 + b"end"
    expected = [*map(str, range(1001 - LINES, 1000)), "end"]
    assert after(written) == expected
    assert after(*(written[at:at + 7] for at in range(0, len(written), 7))) == expected


def test_a_long_line_is_cut() -> None:
    """Its beginning is kept, and that something is missing is shown."""
    whole, long = b"x" * LONGEST, b"x" * (LONGEST + 1)
    assert after(whole, b"\n", long, b"\n", long[:9], long, b"y\nz") == [
        whole.decode(), f"{whole.decode()}…", f"{whole.decode()}…", "z"]


@pytest.mark.parametrize("piece", [
    b"x" * 65536, b"\n" * 65536, b"x\n" * 32768, b"\n" + b"x" * 65535],
    ids=["no end", "blank", "short", "long"])
def test_a_flood_takes_no_memory(piece: bytes) -> None:
    """However much is written, with line ends or without."""
    lines = LastLines()
    tracemalloc.start()
    try:
        for _ in range(60):
            lines.add(piece)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * LINES * LONGEST
