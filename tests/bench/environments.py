"""Environments of peers, each its own, below .cache/bench: made when they are wanted first."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.launch import ROOT, StartError

_LIMIT = 900.0  # seconds


def of_python(name: str, requirement: str) -> Path:
    """A virtual environment with the requirement in it. Blocks for minutes; raises StartError."""
    directory = _directory(name)
    if not _is_complete(directory, requirement):
        _run([sys.executable, "-m", "venv", "--clear", f"{directory}"])
        _run([f"{directory}/bin/python", "-m", "pip", "install", "--quiet", requirement])
        _complete(directory, requirement)
    return directory


def of_node(name: str, package: str) -> Path:
    """A folder with the package in node_modules. Blocks for minutes; raises StartError."""
    directory = _directory(name)
    if not shutil.which("node") or not shutil.which("npm"):
        raise StartError("node and npm are missing: install them (Debian: apt-get install npm)")
    if not _is_complete(directory, package):
        directory.mkdir(parents=True, exist_ok=True)
        _run(["npm", "install", "--prefix", f"{directory}", "--no-audit", "--no-fund",
              "--ignore-scripts", package])
        _complete(directory, package)
    return directory


def _directory(name: str) -> Path:
    return ROOT / ".cache" / "bench" / name


def _is_complete(directory: Path, wanted: str) -> bool:
    try:
        return (directory / "installed").read_text(encoding="utf-8") == wanted
    except OSError:
        return False


def _complete(directory: Path, wanted: str) -> None:
    (directory / "installed").write_text(wanted, encoding="utf-8")


def _run(words: Sequence[str]) -> None:
    print(f"installing: {' '.join(words)}", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise StartError(f"{words[0]} did not end within {_LIMIT:.0f} s") from None
    if done.returncode:
        raise StartError(f"{words[0]} failed: {done.stdout[-500:].decode('utf-8', 'replace')}")
