"""A polite fake engine: the OpenAI chat protocol, answered at once with what it was sent.

It echoes the last message's text and names the top-level fields it received. A text of
`status:400` makes it answer that status, `sleep:300` makes it wait 300 ms first. Standard library
only, so that `scripts/fake-engine` runs on a machine with nothing but Python 3.10 or newer.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

USAGE = "fake-engine: give a port and a name (fake-engine 18661 alpha), or only --self-test"
# A control character inside a JSON text; not the tail of an escaped backslash.
_LOWER_HEX = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f])")


class Unreadable(ValueError):
    """The request is none that this engine understands; the message says why."""


def to_json(value: object) -> bytes:
    """Compact UTF-8 JSON as Jackson writes it: raw non-ASCII, upper-case hex for controls."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = _LOWER_HEX.sub(lambda m: f"{m[1]}\\u00{m[2].upper()}", text)
    return text.encode("utf-8", "replace")


def error(status: int, message: str) -> dict[str, Any]:
    """llama-server's error envelope."""
    return {"error": {"code": status, "message": message, "type": "server_error"}}


def as_text(content: object) -> str:
    """The text of a JSON value as Jackson's `asText("")` gives it: "" for null, lists, objects."""
    if isinstance(content, str):
        return content
    if isinstance(content, bool):
        return str(content).lower()
    return str(content) if isinstance(content, (int, float)) else ""


def last_text(request: dict[str, Any]) -> str:
    """The content of the last message, "" where there is none."""
    messages = request.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return as_text(last.get("content")) if isinstance(last, dict) else ""


def number_in(text: str) -> int:
    """N of `word:N`; raises Unreadable when it is no whole number."""
    digits = text.partition(":")[2]
    if not re.fullmatch(r"[0-9]{1,9}", digits):
        raise Unreadable(f"fake engine wants a whole number in {text}")
    return int(digits)


def parse(body: bytes) -> dict[str, Any]:
    """The request as a dict, {} for a top level of another kind; raises Unreadable."""
    try:
        request = json.loads(body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as cause:
        raise Unreadable("fake engine could not read the request as JSON") from cause
    return request if isinstance(request, dict) else {}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def complete(name: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Status and answer to one chat request; blocks for the time a `sleep:MS` text asks for."""
    request = parse(body)
    last = last_text(request)
    if last.startswith("sleep:"):
        time.sleep(number_in(last) / 1000)
    if last.startswith("status:"):
        status = number_in(last)
        if not 200 <= status <= 599:
            raise Unreadable(f"fake engine can answer 200 to 599, not {status}")
        return status, error(status, f"fake engine returned {status}")
    message = {"role": "assistant", "content": f"{name} heard: {last}"}
    return 200, {
        "id": "chatcmpl-fake", "object": "chat.completion", "created": 1700000000, "model": name,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
        "received_fields": list(request),
    }


class Handler(BaseHTTPRequestHandler):
    """One connection of one client, kept alive from request to request."""

    protocol_version = "HTTP/1.1"
    server: LessonEngine
    # Head and body leave in one packet: two would cost 40 ms each on a kept connection
    # (Nagle's algorithm against delayed acknowledgements).
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer by path, whatever the method."""
        try:
            status, answer = self._route(self.path.partition("?")[0], self._body())
        except Unreadable as refusal:
            status, answer = 400, error(400, str(refusal))
        self._reply(status, to_json(answer))

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST

    def _route(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if path == "/health":
            return 200, {"status": "ok"}
        if path == "/v1/chat/completions":
            return complete(self.server.name, body)
        return 404, error(404, f"fake engine has no {path}")

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(iter(self._chunk, b""))
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit():
            self.close_connection = True
            raise Unreadable(f"fake engine got the Content-Length {length}")
        return self.rfile.read(int(length))

    def _chunk(self) -> bytes:
        size = self.rfile.readline(100).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            self.close_connection = True
            raise Unreadable("fake engine got a broken chunk size")
        data = self.rfile.read(int(size, 16))
        while self.rfile.readline(65536) not in (b"\r\n", b"\n", b""):
            pass  # trailers after the last chunk; other chunks have the empty line only
        return data

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string())
        self.send_header("Content-Type", "application/json; charset=utf-8")
        if status in (204, 304):
            body = b""
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_expect_100(self) -> bool:
        """Let the client send its body now: the interim answer may not stay in the buffer."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def handle(self) -> None:
        """Serve until the client leaves; one that leaves early is no event."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing: the engine is quiet."""


class LessonEngine(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """The engine `name` on 127.0.0.1; port 0 picks a free one. Usable as a context manager:
    entering starts serving in a thread, leaving stops it and closes the port.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, port: int, name: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.name = name

    @property
    def url(self) -> str:
        """The base URL as a gateway's configuration wants it."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> LessonEngine:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def self_test() -> None:
    """Print what the engine answers to three requests."""
    with LessonEngine(0, "alpha") as engine:
        print(_post(engine, {"role": "user", "content": "hi"}, top_k=40))
        print(_post(engine, {"role": "user", "content": "status:400"}))
        start = time.monotonic()
        _post(engine, {"role": "user", "content": "sleep:300"})
        print(f"sleep:300 took at least 300 ms: {str(time.monotonic() - start >= 0.3).lower()}")


def _post(engine: LessonEngine, message: dict[str, str], **fields: int) -> str:
    connection = http.client.HTTPConnection(engine.url[len("http://"):], timeout=10)
    body = to_json({"model": "m", "messages": [message], **fields})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return f"{response.status} {text}"


def serve(port: int, name: str) -> None:
    """Serve until SIGINT or SIGTERM; raises OSError when the port cannot be had."""
    engine = LessonEngine(port, name)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    print(f"fake engine {name} listens on {engine.url}", file=sys.stderr, flush=True)
    engine.serve_forever()


def main(arguments: list[str]) -> None:
    """Run the command line; exits with a sentence on stderr when it cannot."""
    if arguments == ["--self-test"]:
        self_test()
        return
    if len(arguments) != 2 or not re.fullmatch("[0-9]{1,5}", arguments[0]):
        sys.exit(USAGE)
    try:
        serve(int(arguments[0]), arguments[1])
    except (OSError, OverflowError) as cause:
        reason = getattr(cause, "strerror", None) or cause
        sys.exit(f"fake-engine: cannot listen on 127.0.0.1:{arguments[0]}: {reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
