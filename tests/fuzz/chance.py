"""Requests that no client would send, made by chance: bytes of a connection."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.fuzz.material import (
    CONTENT_TYPES, FIELDS, GREETINGS, HOSTS, MAIN, METHODS, PATHS, QUERIES, SCALARS, VERSIONS,
    WORDS,
)

_DEEPEST, _WIDEST = 4, 5


def made(random: Random) -> bytes:
    """What one connection says: a request, several, one with faults in it, or no HTTP at all."""
    kind = random.random()
    if kind < 0.04:
        return random.choice([*GREETINGS, random.randbytes(random.randint(1, 400))])
    data = request(random)
    if kind < 0.65:
        return data
    if kind < 0.95:
        return mutated(random, data)
    return data + request(random)


def request(random: Random) -> bytes:
    """A request that is well-formed but for what stands in it."""
    body, framing = _framed(random, _body(random))
    method = random.choice(METHODS)
    lines = [f"{method} {_target(random)} {_version(random)}", *_host(random), *framing]
    lines += random.sample(FIELDS, max(0, random.randint(-4, 2)))
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def mutated(random: Random, data: bytes) -> bytes:
    """The same with some faults."""
    for _ in range(random.randint(1, 4)):
        data = random.choice(_MUTATIONS)(random, data)
    return data


def _target(random: Random) -> str:
    """Half of the time one of the APIs' main routes."""
    path = random.choice(MAIN if random.random() < 0.5 else PATHS)
    return path + (random.choice(QUERIES) if random.random() < 0.3 else "")


def _version(random: Random) -> str:
    return "HTTP/1.1" if random.random() < 0.9 else random.choice(VERSIONS)


def _host(random: Random) -> list[str]:
    if random.random() < 0.92:
        return ["Host: localhost"]
    return [f"Host: {host}" for host in random.choices(HOSTS, k=random.randint(0, 2))]


def _body(random: Random) -> tuple[bytes, list[str]]:
    """A body, and what is said of it."""
    kind = random.random()
    if kind < 0.1:
        return b"", []
    if kind < 0.2:
        return random.randbytes(random.randint(1, 300)), [random.choice(CONTENT_TYPES)]
    data = json.dumps(_object(random), allow_nan=True).encode()
    if kind < 0.3:
        return gzip.compress(data, mtime=0), ["Content-Encoding: gzip"]
    if kind < 0.4:
        return _form(data), ['Content-Type: multipart/form-data; boundary="b"']
    return data, [random.choice(CONTENT_TYPES)]


def _form(data: bytes) -> bytes:
    part = b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
    return part % (b"model", b"m") + part % (b"file", data) + b"--b--\r\n"


def _object(random: Random) -> dict[str, Any]:
    """An object as the APIs have it, in which some values are anything."""
    found: dict[str, Any] = {
        "model": "m", "modelId": "m", "stream": random.random() < 0.3, "prompt": "hi",
        "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
    for _ in range(max(0, random.randint(-2, 3))):
        found[random.choice(WORDS)] = _value(random, 0)
    return found


def _value(random: Random, depth: int) -> Any:
    kind = random.random()
    if depth == _DEEPEST or kind < 0.5:
        return random.choice(SCALARS)
    inner = [_value(random, depth + 1) for _ in range(random.randint(0, _WIDEST))]
    return inner if kind < 0.75 else {random.choice(WORDS): each for each in inner}


def _framed(random: Random, said: tuple[bytes, list[str]]) -> tuple[bytes, list[str]]:
    """The body as it goes on the wire, and all that is said of it."""
    body, fields = said
    if random.random() < 0.7:
        return body, [f"Content-Length: {len(body)}", *fields]
    size = random.randint(1, 100)
    parts = [body[start:start + size] for start in range(0, len(body), size)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return chunks + b"0\r\n\r\n", ["Transfer-Encoding: chunked", *fields]


def _place(random: Random, data: bytes) -> int:
    """Somewhere, in the head most of the time."""
    head = data.find(b"\r\n\r\n") + 4
    return random.randrange(max(1, head if random.random() < 0.7 else len(data)))


def _flip(random: Random, data: bytes) -> bytes:
    at = _place(random, data)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1:]


def _insert(random: Random, data: bytes) -> bytes:
    at = _place(random, data)
    new = random.choice([b"\0", b"\r\n", b"\n", b" ", b":", b"%", b"%00", b"\xff", b"\r", b"\t",
                         b"a" * 9000, random.randbytes(3)])
    return data[:at] + new + data[at:]


def _delete(random: Random, data: bytes) -> bytes:
    at = _place(random, data)
    return data[:at] + data[at + random.randint(1, 20):]


def _repeat(random: Random, data: bytes) -> bytes:
    at = _place(random, data)
    return data[:at] + data[at:at + random.randint(1, 60)] * 2 + data[at:]


def _cut(random: Random, data: bytes) -> bytes:
    return data[:_place(random, data)] or data[:1]


def _number(random: Random, data: bytes) -> bytes:
    """Another number where there is one."""
    digits = [at for at in range(len(data)) if data[at:at + 1].isdigit()]
    if not digits:
        return data
    at = random.choice(digits)
    return data[:at] + random.choice([b"-1", b"0", b"9" * 30, b"1e9", b"0x1"]) + data[at + 1:]


_MUTATIONS: Sequence[Callable[[Random, bytes], bytes]] = (
    _flip, _insert, _delete, _repeat, _cut, _number)
