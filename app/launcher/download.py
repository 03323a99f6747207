"""Downloads one package by pip, with a progress line."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from app.engines.lifeline import ROOT, tied
from app.progress_line import ProgressLine

_LOOK = 0.25  # s between two looks at how far pip is


class DownloadError(Exception):
    """The package could not be had; the message is one sentence with the remedy."""


def download(package: str, size: int, folder: Path) -> Path:
    """The one file of `package` (as pip writes a requirement), put into the empty `folder`.

    Blocks until pip is through; `size` in bytes is what the progress line counts up to. All that
    pip writes meanwhile is in `folder`. An exception, KeyboardInterrupt too, ends pip first.
    Raises DownloadError and OSError.
    """
    if find_spec("pip") is None:
        raise DownloadError(
            f"this Python has no pip to download with: run {sys.executable} -m ensurepip")
    wheels, scratch, log = folder / "wheels", folder / "scratch", folder / "pip.log"
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", package, "--no-deps",
               "--only-binary", ":all:", "--dest", str(wheels), "--no-cache-dir", "--quiet",
               "--no-input", "--disable-pip-version-check", "--retries", "2"]
    with log.open("wb") as output:
        pip = subprocess.Popen(
            tied(command), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            env={**os.environ, "TMPDIR": str(scratch)})
    try:
        code = _watch(pip, package, size, folder)
    finally:
        pip.kill()
        pip.wait()
    found = sorted(wheels.glob("*.whl"))
    if code or not found:
        raise DownloadError(_reason(package, log.read_text("utf-8", "replace")))
    return found[0]


def _watch(pip: "subprocess.Popen[bytes]", package: str, size: int, folder: Path) -> int:
    """Show how far pip is until it ends; its exit code."""
    line = ProgressLine(f"downloading {package}", size)
    while True:
        try:
            code = pip.wait(_LOOK)
        except subprocess.TimeoutExpired:
            line.show(_bytes_below(folder))
        else:
            line.end(complete=code == 0)
            return code


def _bytes_below(folder: Path) -> int:
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(directory, name)).st_size
            except FileNotFoundError:  # pip has moved it meanwhile
                continue
    return total


def _reason(package: str, output: str) -> str:
    errors = [line for line in output.splitlines() if line.startswith("ERROR:")]
    said = errors[0].removeprefix("ERROR:").strip() if errors else "it gave no reason"
    if "No space left" in output:
        return f"the disk became full while pip downloaded {package}: make room and start again"
    return (f"pip could not download {package} ({said}): "
            "check the network and pip's index settings, then start again")
