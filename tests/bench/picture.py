"""Requests with a large picture, one at a time: what they cost beside reading their JSON once."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from tests.bench import tree
from tests.bench.exchange import TEXT, picture_question
from tests.bench.wire import RECEIVE, LoadError, Target, connect, whole

_PATIENCE = 30.0  # seconds for one answer
_READINGS = 3


@dataclass(frozen=True)
class Picture:
    """What a request with a large body costs; time in seconds, memory in bytes."""

    cpu: float  # of the subject, per request
    of_reading: float  # … as a multiple of what json.loads takes for the body
    memory: int  # by which the first request made the subject larger than it was, at most
    of_body: float  # … as a multiple of the body


def run(target: Target, size: int, seconds: float) -> Picture:
    """Requests with `size` bytes of picture for so long, at least one.

    Raises LoadError, OSError.
    """
    request = picture_question(target.headers, size)
    reading = _reading(request)
    before = tree.memory_bytes(target.pid)
    tree.forget_peak(target.pid)
    cpu, end, count = tree.cpu_seconds(target.pid), time.monotonic() + seconds, 0
    memory = 0
    while count == 0 or time.monotonic() < end:
        _ask(target, request)
        count += 1
        memory = memory or tree.peak_memory_bytes(target.pid) - before
    cpu = (tree.cpu_seconds(target.pid) - cpu) / count
    return Picture(cpu, cpu / reading, memory, memory / len(request))


def _reading(request: bytes) -> float:
    body = request.partition(b"\r\n\r\n")[2]
    times = []
    for _ in range(_READINGS):
        begin = time.process_time()
        json.loads(body)
        times.append(time.process_time() - begin)
    return min(times)


def _ask(target: Target, request: bytes) -> None:
    received = bytearray()
    with connect(target.port) as sock:
        sock.settimeout(_PATIENCE)
        sock.sendall(request)
        while (body := whole(received)) is None:
            data = sock.recv(RECEIVE)
            if not data:
                raise LoadError("a connection was closed instead of an answer")
            received += data
    if TEXT not in body:
        raise LoadError(f"not the engine's answer: {body[:400]!r}")
