"""How the tests of managed engines ask: by prompts that say how to answer, and many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.sse import read_events
from tests.server.calls import CHAT, JSON, openai_error, post, to_bytes

OLLAMA, GENERATE, EMBED, PS = "/api/chat", "/api/generate", "/api/embed", "/api/ps"
Header = tuple[str, str]
Result = TypeVar("Result")


def body(model: str, prompt: str = "id:x", **fields: Any) -> dict[str, Any]:
    """A chat with one message."""
    return {"model": model, "messages": [{"role": "user", "content": prompt}], **fields}


def chat(url: str, model: str, prompt: str = "id:x", headers: Iterable[Header] = (),
         **fields: Any) -> RawAnswer:
    """One chat, its answer whole."""
    return post(url, CHAT, body(model, prompt, **fields), [*JSON, *headers])


def converse(url: str, *texts: str, model: str = "m", **fields: Any) -> RawAnswer:
    """A chat of a system message and these, the user's and the assistant's in turn."""
    said = [{"role": ("user", "assistant")[number % 2], "content": text}
            for number, text in enumerate(texts)]
    messages = [{"role": "system", "content": "Be brief."}, *said]
    return post(url, CHAT, {"model": model, "messages": messages, **fields})


def ollama(url: str, model: str, prompt: str = "id:x", **fields: Any) -> RawAnswer:
    """One chat of Ollama's that is no stream unless it is asked for, its answer whole."""
    return post(url, OLLAMA, body(model, prompt, **{"stream": False, **fields}))


def unload(url: str, model: str, path: str = GENERATE) -> RawAnswer:
    """Ask for the end of the model's engine."""
    return post(url, path, {"model": model, "keep_alive": 0})


def succeeds(answer: RawAnswer) -> RawAnswer:
    """The answer, which has to be a whole 200."""
    assert answer.status == 200, (answer.status, answer.body)
    assert answer.body and not answer.cut
    return answer


def streams_whole(answer: RawAnswer) -> list[str]:
    """The texts of a chat's stream, which has to end well."""
    assert answer.status == 200, (answer.status, answer.body)
    events, rest = read_events(answer.body)
    assert not answer.cut and rest == b"" and events[-1].data == "[DONE]", answer.body
    choices = [event.json()["choices"][0] for event in events[:-1]]
    assert choices[-1]["finish_reason"] == "stop"
    return [choice["delta"]["content"] for choice in choices[:-1]]


def not_ready(answer: RawAnswer) -> str:
    """The message of a 503 of /v1 for an engine that does not start."""
    assert answer.status == 503, (answer.status, answer.body)
    found = openai_error(answer)
    assert (found["type"], found["code"]) == ("server_error", "service_unavailable")
    assert retry_after(answer) >= 1
    return str(found["message"])


def retry_after(answer: RawAnswer) -> int:
    """The seconds of a Retry-After, which has to be a whole number."""
    value = answer.header("Retry-After")
    assert value is not None and value.isascii() and value.isdigit(), answer.headers
    return int(value)


class Waiting(NamedTuple):
    """A client whose stream has begun."""

    client: RawClient
    answer: RawAnswer


@contextmanager
def streaming(url: str, model: str, prompt: str) -> Iterator[Waiting]:
    """A chat's stream whose first event has arrived; the rest is read by the test."""
    with RawClient(url) as client:
        answer = send(client, model, prompt, stream=True).answer()
        assert answer.status == 200, answer.body
        assert next(answer.pieces())
        yield Waiting(client, answer)


def send(client: RawClient, model: str, prompt: str, **fields: Any) -> RawClient:
    """Send a chat and wait for nothing."""
    data = to_bytes(body(model, prompt, **fields))
    client.send(f"POST {CHAT} HTTP/1.1\r\nHost: {client.host}\r\nContent-Length: {len(data)}\r\n"
                "Content-Type: application/json\r\n\r\n".encode() + data)
    return client


def together(*calls: Callable[[], RawAnswer]) -> list[RawAnswer]:
    """Make all calls at the same time; their answers, in the order of the calls."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: call(), calls))


class Crowd:
    """Calls that are under way while the test goes on."""

    def __init__(self, pool: ThreadPoolExecutor, url: str) -> None:
        self._pool = pool
        self.url = url

    def chat(self, model: str, prompt: str = "id:x", headers: Iterable[Header] = (),
             **fields: Any) -> Future[RawAnswer]:
        """A chat whose whole answer comes later."""
        return self._pool.submit(chat, self.url, model, prompt, headers, **fields)

    def ask(self, call: Callable[..., RawAnswer], *given: Any, **fields: Any) -> Future[RawAnswer]:
        """What `call` answers later, made with the gateway's address first."""
        return self._pool.submit(call, self.url, *given, **fields)

    def run(self, work: Callable[[], Result]) -> Future[Result]:
        """What this gives later."""
        return self._pool.submit(work)

    def keep_asking(self, model: str, prompt: str, enough: threading.Event,
                    **fields: Any) -> Future[int]:
        """One chat after another, all of which have to succeed; gives their number."""
        def ask() -> int:
            count = 0
            while not enough.is_set():
                succeeds(chat(self.url, model, prompt, **fields))
                count += 1
            return count
        return self.run(ask)


@contextmanager
def crowd(url: str) -> Iterator[Crowd]:
    """Calls in the background, at most 64 at a time; all are over when the context is left."""
    with ThreadPoolExecutor(64) as pool:
        yield Crowd(pool, url)
