"""A client of the Ollama API that leaves takes its engine's work with it, at any moment of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.fakes.engine_steps import JSON_TYPE, chunks, head, mark, send, silence
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient, request_bytes
from tests.fakes.raw_connection import Connection
from tests.fakes.raw_engine import RawEngine, Script, Step
from tests.fakes.stream_steps import DONE, STOP, endless, ev, head_for
from tests.server.calls import JSON, get, ollama_error, post, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import (
    CHAT, EMBED, EMBEDDINGS, GENERATE, PS, TAGS, VERSION, WORK, chat,
)
from tests.server.ollama.conftest import THREADS
from tests.server.ollama.engine_answers import (
    LLAMA_ROUTES, V1_CHAT, V1_EMBEDDINGS, failing, routed, streamed,
)
from tests.server.ollama.ndjson import arriving, success
from tests.server.stream.leaving import LEAVING, Leave, let_go

SOON = 1.0  # seconds within which an engine is let go; nothing else here would do it before
TWO = ev("1") + ev("2")
BEGUN = [send(head_for("chunked")), chunks(TWO)]


def working(engine: RawEngine, path: str = V1_CHAT) -> Connection:
    """The connection of the one request to this path of the engine."""
    [request] = [each for each in engine.requests if each.path == path]
    return engine.connections[request.connection - 1]


@dataclass(frozen=True)
class Moment:
    """A moment in a call: who works where, and how many lines the client has by then."""

    steps: list[Step] = field(default_factory=list)
    lines: int = 0
    route: str = CHAT
    path: str = V1_CHAT
    fields: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Script] = field(default_factory=dict)

    @contextmanager
    def reached(self, url: str, engine: RawEngine) -> Iterator[tuple[RawClient, Connection]]:
        """A client at this moment, and the connection on which its engine works."""
        here = threading.Event()
        script = [*self.steps, mark(here), silence]
        engine.answer_with(routed({**LLAMA_ROUTES, **self.others, self.path: script}))
        body = to_bytes({**WORK[self.route], **self.fields})
        with RawClient(url) as client:
            client.send(request_bytes("POST", self.route, [("Host", "x"), *JSON], body))
            assert here.wait(10), [request.path for request in engine.requests]
            if self.lines:
                found = arriving(client.answer())
                assert all(not next(found)["done"] for _ in range(self.lines))
            yield client, working(engine, self.path)


TOO_LARGE = failing(500, "input (600 tokens) is too large to process. increase the physical batch "
                         "size (current batch size: 512)")
NO_STREAM = {"stream": False}
MOMENTS = {
    "before_the_head": Moment(),
    "in_the_head": Moment([send(b"HTTP/1.1 200 OK\r\nContent-Ty")]),
    "after_the_head": Moment([send(head_for("chunked"))]),
    "behind_a_comment": Moment([send(head_for("chunked")), chunks(b": ping\n\n")]),
    "mid_stream": Moment(BEGUN, 2),
    "mid_stream_unframed": Moment([send(head_for("close") + TWO)], 2),
    "behind_the_reason": Moment([send(head_for("chunked")), chunks(TWO + STOP)], 2),
    "whole_before_the_head": Moment(fields=NO_STREAM),
    "whole_mid_stream": Moment(BEGUN, fields=NO_STREAM),
    "whole_in_a_document": Moment(
        [send(head(200, [*JSON_TYPE, ("Content-Length", "99")]) + b"{")], fields=NO_STREAM),
    "in_an_error": Moment([send(head(500, [*JSON_TYPE, ("Content-Length", "99")]) + b"{")]),
    "generate": Moment(BEGUN, 2, GENERATE),
    "generate_raw": Moment(route=GENERATE, path="/completion", fields={"raw": True}),
    "generate_suffix": Moment(route=GENERATE, path="/infill",
                              fields={"suffix": "x", "model": "hf.co/a/filler:Q4_K_M"}),
    "embed": Moment(route=EMBED, path=V1_EMBEDDINGS),
    "embeddings": Moment(route=EMBEDDINGS, path=V1_EMBEDDINGS),
    "making_the_prompt": Moment(route=GENERATE, path="/apply-template", fields={"context": [1003]}),
    "shortening_an_input": Moment(route=EMBED, path="/tokenize",
                                  others={V1_EMBEDDINGS: TOO_LARGE}),
    "making_the_context": Moment(route=GENERATE, path="/tokenize"),
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_the_engine_is_let_go(patient: GatewayProcess, engine: RawEngine, moment: Moment,
                              leave: Leave) -> None:
    """However and whenever a client leaves, the engine's connection closes, though it is silent."""
    with moment.reached(patient.url, engine) as (client, connection):
        assert not connection.peer_closed.is_set()
        leave(client)
        assert connection.peer_closed.wait(SOON)
    engine.answer_with(streamed(ev("a")))
    assert success(chat(patient.url))


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_an_engine_in_full_flow_is_let_go(
        patient: GatewayProcess, engine: RawEngine, leave: Leave) -> None:
    """One that sends without a pause cannot send on."""
    engine.answer_with(routed({V1_CHAT: [send(head_for("chunked")), endless(ev("x"))]}))
    with RawClient(patient.url) as client:
        found = arriving(client.request("POST", CHAT, JSON, to_bytes(WORK[CHAT])))
        for _ in range(100):
            next(found)
        leave(client)
        wait_until(lambda: let_go(working(engine)), "the engine to be let go", SOON)


def test_a_crowd_that_leaves_frees_its_threads(patient: GatewayProcess, engine: RawEngine) -> None:
    """More clients than there are threads, one after the other and all at once."""
    engine.answer_with([*BEGUN, silence])
    for _ in range(2):
        clients = [RawClient(patient.url) for _ in range(30)]
        for client in clients:
            next(arriving(client.request("POST", CHAT, JSON, to_bytes(WORK[CHAT]))))
        for client in clients:
            client.close()
        wait_until(lambda: all(c.peer_closed.is_set() for c in engine.connections),
                   "all of the engine's connections to be closed", 5)
    engine.answer_with(streamed(ev("a")))
    assert success(chat(patient.url))


def test_what_needs_no_engine_is_answered_beside_a_crowd(
        patient: GatewayProcess, engine: RawEngine) -> None:
    """As many streams as there are places: one more is told to come back, the lists are not."""
    engine.answer_with([*BEGUN, silence])
    body = to_bytes(WORK[CHAT])
    with ExitStack() as stack:
        for _ in range(THREADS):
            client = stack.enter_context(RawClient(patient.url))
            next(arriving(client.request("POST", CHAT, JSON, body)))
        for path in WORK:
            answer = post(patient.url, path, WORK[path])
            assert answer.status in (429, 503) and ollama_error(answer)
            assert int(answer.header("Retry-After") or "") > 0
        for path in (TAGS, PS, VERSION, "/health"):
            assert get(patient.url, path).status == 200


def test_more_bytes_are_no_departure(patient: GatewayProcess, engine: RawEngine) -> None:
    """A client may send its next request before it has read the answer to the first."""
    go_on = threading.Event()
    engine.answer_with([*BEGUN, lambda e: e.wait(go_on), chunks(STOP + DONE, b"")])
    with RawClient(patient.url) as client:
        request = request_bytes("POST", CHAT, [("Host", "x"), *JSON], to_bytes(WORK[CHAT]))
        client.send(request)
        answer = client.answer()
        next(arriving(answer))
        client.send(request)
        go_on.set()
        assert answer.body.endswith(b"}\n") and b'"done":true' in answer.body
        assert success(client.answer().whole())
    assert len(engine.requests) == 2
