"""Reading metadata from files that are no files, are missing, or change while they are read."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import pytest

from app.catalog.gguf import GgufError, read, read_from
from tests.fakes.gguf_writer import LITTLE, Type, gguf

PAIRS = [
    ("general.architecture", Type.STRING, "llama"),
    ("tokens", Type.ARRAY, (Type.STRING, ["token"] * 20_000)),
    ("template", Type.STRING, "t" * 100_000),
    ("llama.context_length", Type.UINT32, 32768),
]
VALUES = {
    "general.architecture": "llama", "template": "t" * 100_000, "llama.context_length": 32768
}


@pytest.fixture(autouse=True)
def hang_guard() -> Iterator[None]:
    """Makes a test fail that waits for a pipe or a device: none here takes a second."""

    def give_up(*_: object) -> None:
        raise AssertionError("still reading after 30 s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def make_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def make_directory(path: Path) -> Path:
    path.mkdir()
    return path


def make_link_to_device(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize("make", [make_pipe, make_directory, make_link_to_device])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """A pipe nobody writes to, a directory or a device is an error and blocks nobody."""
    with pytest.raises(GgufError, match="^not a regular file$"):
        read(make(tmp_path / "it.gguf"))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("missing.gguf", FileNotFoundError),
        ("file/below.gguf", NotADirectoryError),
        ("n" * 5000, OSError),
        ("circle", OSError),
    ],
)
def test_a_file_that_cannot_be_opened_is_an_oserror(
    tmp_path: Path, name: str, error: type[OSError]
) -> None:
    """The system's own error passes through, so that a caller can tell missing from broken."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(error):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["zero\0byte", "half\ud800"])
def test_a_name_no_file_can_have_is_a_gguf_error(name: str) -> None:
    """A name that cannot even be given to the system is refused like a broken file."""
    with pytest.raises(GgufError, match="^not a file name$"):
        read(name)


def test_a_link_and_a_name_that_is_not_utf8_are_read(tmp_path: Path) -> None:
    """A symbolic link is followed, and a file name need not be text."""
    target = os.fsencode(tmp_path) + b"/\xff.gguf"
    with open(target, "wb") as file:
        file.write(gguf(PAIRS))
    link = tmp_path / "link.gguf"
    link.symlink_to(os.fsdecode(target))
    assert read(link).values == read(os.fsdecode(target)).values == VALUES


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    """Every path closes the file: read, refused by content, refused by kind."""
    good, bad = tmp_path / "good.gguf", tmp_path / "bad.gguf"
    good.write_bytes(gguf(PAIRS))
    bad.write_bytes(gguf(PAIRS)[:500])
    before = os.listdir("/proc/self/fd")
    read(good)
    for path in (bad, tmp_path):
        with pytest.raises(GgufError):
            read(path)
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("arrays", [False, True])
def test_a_file_shorter_than_it_was_when_opened(arrays: bool) -> None:
    """A file cut after its size was taken gives an error, or the values before the cut."""
    whole = gguf(PAIRS)
    for cut in [*range(0, 200), *range(200, len(whole), 3989), len(whole) - 1]:
        with pytest.raises(GgufError):
            read_from(BytesIO(whole[:cut]), len(whole), arrays)


def test_bytes_added_while_reading_are_not_believed() -> None:
    """Only the bytes that were there when the file was opened count."""
    whole = gguf([("a", Type.STRING, "text")])
    with pytest.raises(GgufError, match="^the file ends inside the value of 'a'$"):
        read_from(BytesIO(whole), len(whole) - 1)
    assert read_from(BytesIO(whole + b"more"), len(whole)).values == {"a": "text"}


def cut_and_grow(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.truncate(len(data) // 2)
        file.seek(len(data) // 2)
        file.write(data[len(data) // 2:])


def write_anew(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        for start in range(0, len(data), 16_384):
            file.write(data[start:start + 16_384])
            file.flush()


def replace(path: Path, data: bytes) -> None:
    other = path.with_suffix(".part")
    other.write_bytes(data)
    other.replace(path)


@pytest.mark.parametrize("change", [cut_and_grow, write_anew, replace])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, change: Callable[[Path, bytes], None]
) -> None:
    """Two hundred reads of a file being rewritten give its values or a GgufError each time."""
    path, data, done = tmp_path / "changing.gguf", gguf(PAIRS), threading.Event()
    path.write_bytes(data)

    def keep_changing() -> None:
        while not done.is_set():
            change(path, data)

    writer = threading.Thread(target=keep_changing)
    writer.start()
    try:
        for _ in range(200):
            try:
                assert read(path).values == VALUES
            except GgufError:
                continue
    finally:
        done.set()
        writer.join()
    assert read(path).values == VALUES


def test_an_array_at_the_very_end_is_not_read_from_disk() -> None:
    """Numbers passed over cost no reading: only the start of the file is asked for."""
    numbers = LITTLE.pair("n", Type.ARRAY, (Type.UINT8, bytes(3_000_000)))

    class Counted(BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            Counted.taken += len(data)
            return data

    data = LITTLE.header(2) + numbers + LITTLE.pair("after", Type.BOOL, True)
    assert read_from(Counted(data), len(data)).values == {"after": True}
    assert Counted.taken < 200_000
