"""The side of `engine_command` that listens: llama-server's pages, and answers by the prompt.

Words of the last message, or of the input to embed, say how a call is answered: `id:NAME` names it
in the journal, `answer:0.2` takes so many seconds, `events:5` is the length of a stream,
`until:FILE` waits for a file (a stream after its first event), `crash:2` ends the process after
two events, `silent:2` says nothing from then on; in an answer that is no stream both happen before
it. `grow:64` takes so many MiB of memory for good. The client that leaves meanwhile is noted.
"""

from __future__ import annotations

import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from wire import Cut, Wire, body_length, read_head

_LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
_WORK = ("/v1/chat/completions", "/v1/embeddings")
_SMALL: dict[str, Any] = {"/tokenize": {"tokens": [1, 2]}, "/apply-template": {"prompt": "p"}}
_STREAM = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
           b"Transfer-Encoding: chunked\r\n\r\n")


class Gone(Exception):
    """The client has left."""


class Words:
    """How one call is to be answered."""

    def __init__(self, body: dict[str, Any], seconds: float) -> None:
        messages, texts = body.get("messages") or [{}], body.get("input") or ""
        prompt = messages[-1].get("content") or (texts if isinstance(texts, str) else texts[-1])
        said = dict(word.split(":", 1) for word in prompt.split() if ":" in word)
        self.id = said.get("id", "")
        self.seconds = float(said.get("answer", seconds))
        self.events = int(said.get("events", 3))
        self.until = said.get("until", "")
        self.crash = int(said.get("crash", -1))
        self.silent = int(said.get("silent", -1))
        self.grow = int(said.get("grow", 0))


class Peer:
    """The client of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(self, size: int) -> bytes:
        """What it sends, b"" when it has left; blocks."""
        try:
            return self.socket.recv(size)
        except OSError:
            return b""

    def send(self, data: bytes) -> None:
        """Send it all; raises Gone."""
        try:
            self.socket.sendall(data)
        except OSError as cause:
            raise Gone from cause

    def wait(self, reached: Callable[[], bool]) -> None:
        """Block until it is reached; raises Gone when the client leaves first."""
        while not reached():
            readable, _, _ = select.select([self.socket], [], [], 0.01)
            if readable and not self._peek():
                raise Gone

    def _peek(self) -> bytes:
        try:
            return self.socket.recv(1, socket.MSG_PEEK)
        except OSError:
            return b""


class EngineServer:
    """Serves one model; `is_loaded` is set by whoever loads it."""

    def __init__(self, options: Any, note: Callable[..., None]) -> None:
        self._options = options
        self._note = note
        self.is_loaded = threading.Event()
        self._grown: list[bytes] = []

    def serve(self, listener: socket.socket) -> None:
        """Answer whoever connects; never returns. Notes when it is ready."""
        port = listener.getsockname()[1]
        threading.Thread(target=self._say_ready, args=(port,), daemon=True).start()
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=self._converse, args=(sock,), daemon=True).start()

    def _say_ready(self, port: int) -> None:
        self.is_loaded.wait()
        self._note("ready", port=port)

    def _converse(self, sock: socket.socket) -> None:
        peer = Peer(sock)
        wire = Wire(peer.receive)
        with sock:
            try:
                while True:
                    line, headers = read_head(wire)
                    body = wire.exactly(body_length(headers) or 0)
                    method, target, _ = line.split(" ")
                    self._answer(peer, method, target.partition("?")[0], body)
            except (Cut, Gone):
                pass

    def _answer(self, peer: Peer, method: str, path: str, body: bytes) -> None:
        if method == "POST" and path in _WORK and self.is_loaded.is_set():
            self._work(peer, json.loads(body))
            return
        status, found = self._page(method, path)
        peer.send(_whole(status, found))

    def _page(self, method: str, path: str) -> tuple[int, Any]:
        options, loaded = self._options, self.is_loaded.is_set()
        if path == "/health" and not options.no_health:
            if options.sick and os.path.exists(options.sick):
                return 500, {"error": {"message": "sick"}}
            return (200, {"status": "ok"}) if loaded else (503, _LOADING)
        if path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": options.model, "object": "model"}]}
        if path == "/props" and options.slots and loaded:
            return 200, {"total_slots": options.slots, "model_path": "/m.gguf",
                         "default_generation_settings": {"n_ctx": 4096}}
        if not loaded:
            return 503, _LOADING
        return (200, _SMALL[path]) if path in _SMALL else (404, {"error": {"message": "no page"}})

    def _work(self, peer: Peer, body: dict[str, Any]) -> None:
        words = Words(body, self._options.answer)
        self._note("begin", id=words.id)
        self._grown.append(b"x" * (words.grow << 20))
        try:
            if body.get("stream"):
                self._stream(peer, words)
            else:
                self._suffer(peer, words, 0)
                self._wait_for_gate(peer, words)
                _pause(peer, words.seconds)
                self._note("end", id=words.id)
                peer.send(_whole(200, self._embedding() if "input" in body else self._chat(words)))
        except Gone:
            self._note("left", id=words.id)
            raise

    def _stream(self, peer: Peer, words: Words) -> None:
        peer.send(_STREAM)
        for number in range(words.events + 1):
            self._suffer(peer, words, number)
            if number == 1:
                self._wait_for_gate(peer, words)
            _pause(peer, words.seconds / (words.events + 1))
            if number < words.events:
                peer.send(_chunk(self._event({"content": f"{number} "}, None)))
        # Before the last bytes: whoever has them may send the next call, which begins after this.
        self._note("end", id=words.id)
        peer.send(_chunk(self._event({}, "stop")) + _chunk(b"data: [DONE]\n\n") + _chunk(b""))

    def _suffer(self, peer: Peer, words: Words, number: int) -> None:
        if words.crash == number:
            self._note("crash", id=words.id)
            os._exit(7)
        if words.silent == number:
            peer.wait(lambda: False)

    def _wait_for_gate(self, peer: Peer, words: Words) -> None:
        if words.until:
            peer.wait(lambda: os.path.exists(words.until))

    def _chat(self, words: Words) -> dict[str, Any]:
        message = {"role": "assistant", "content": f"{self._options.model} heard {words.id}"}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": self._options.model,
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}

    def _embedding(self) -> dict[str, Any]:
        return {"object": "list", "model": self._options.model,
                "data": [{"object": "embedding", "index": 0, "embedding": [0.6, 0.8]}],
                "usage": {"prompt_tokens": 2, "total_tokens": 2}}

    def _event(self, delta: dict[str, Any], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {"id": "c", "object": "chat.completion.chunk", "created": 1,
                 "model": self._options.model, "choices": [choice]}
        return b"data: " + json.dumps(event).encode() + b"\n\n"


def _pause(peer: Peer, seconds: float) -> None:
    end = time.monotonic() + seconds
    peer.wait(lambda: time.monotonic() >= end)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _whole(status: int, found: Any) -> bytes:
    body = json.dumps(found).encode()
    return (f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body
