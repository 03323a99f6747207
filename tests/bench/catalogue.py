"""Ollama's lists of a gateway with many models: /api/tags and /api/show, warm and cold."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench import tree
from tests.bench.exchange import head, post
from tests.bench.wire import RECEIVE, LoadError, Target, connect, whole
from tests.fakes.registry_home import RegistryHome, gguf

LARGE = "example-org/large{}:latest"
_VOCABULARY = 262_144
_LARGE = 5  # models with so many words: each is cold once
_OLD = 3600.0  # seconds; what is known of a file that changed just now is not remembered
_SHARES = (0.7, 0.3)  # of the time, for tags and for show


@dataclass(frozen=True)
class Catalogue:
    """CPU time per request, in seconds."""

    tags: float
    show: float
    cold_show: float  # of a model with a large vocabulary that nobody has looked at yet


def fill(path: Path, models: int) -> None:
    """A registry of so many small models, and a few with a large vocabulary."""
    home = RegistryHome(path)
    for number in range(models):
        home.add(f"example-org/model{number}:Q4_K_M", gguf({
            "general.architecture": "llama", "llama.context_length": 4096 + number,
            "tokenizer.chat_template": "{{ messages }}"}))
    words = [f"▁word{number}" for number in range(_VOCABULARY)]
    for number in range(_LARGE):
        home.add(LARGE.format(number), gguf({
            "general.architecture": "llama", "llama.context_length": 4096 + number,
            "tokenizer.ggml.tokens": words, "tokenizer.chat_template": "{{ messages }}"}))
    then = time.time() - _OLD
    for each in path.rglob("*"):
        os.utime(each, (then, then))


def run(target: Target, seconds: float) -> Catalogue:
    """Lists for so long, all models of which have been looked at once before.

    Raises LoadError, OSError.
    """
    cold = [_cost(target, _show(LARGE.format(number))) for number in range(_LARGE)]
    tags = head("GET /api/tags", {"Host": "127.0.0.1"})
    _cost(target, tags)
    for_tags, for_show = (share * seconds for share in _SHARES)
    return Catalogue(
        _cost(target, tags, for_tags), _cost(target, _show(LARGE.format(0)), for_show),
        sorted(cold)[_LARGE // 2])


def _show(model: str) -> bytes:
    return post("/api/show", {}, {"model": model})


def _cost(target: Target, request: bytes, seconds: float = 0.0) -> float:
    """CPU time of one request, asked on one connection for so long, once at least."""
    cpu, end, count = tree.cpu_seconds(target.pid), time.monotonic() + seconds, 0
    with connect(target.port) as sock:
        sock.setblocking(True)
        while count == 0 or time.monotonic() < end:
            sock.sendall(request)
            _take_answer(sock)
            count += 1
    return (tree.cpu_seconds(target.pid) - cpu) / count


def _take_answer(sock: socket.socket) -> None:
    received = bytearray()
    while whole(received) is None:
        data = sock.recv(RECEIVE)
        if not data:
            raise LoadError("a connection was closed instead of an answer")
        received += data
