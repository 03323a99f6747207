"""Ways in which a client leaves, and moments of a call at which it does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tests.fakes.engine_steps import JSON_TYPE, chunks, head, mark, send, silence
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_connection import Connection
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import CHUNKED, DONE, STOP, ev, head_for
from tests.server.stream.apis import Api
from tests.server.stream.asking import read_up_to, send as send_request

Leave = Callable[[RawClient], None]
LEAVING: dict[str, Leave] = {
    "close": RawClient.close, "reset": RawClient.reset, "half_close": RawClient.end}


def let_go(connection: Connection) -> bool:
    """Whether an engine that sends has noticed, be it by reading or by sending."""
    return connection.peer_closed.is_set() or connection.closed


class Moment:
    """A moment in a call: what the engine has done by then, and what the client has seen."""

    def __init__(self, *steps: Step, streaming: bool = True, seen: bytes | None = None) -> None:
        self.steps = steps
        self.streaming = streaming
        self.seen = seen

    @contextmanager
    def reached(self, url: str, engine: RawEngine, api: Api) -> Iterator[tuple[RawClient,
                                                                               Connection]]:
        """A client at this moment of a call, and the connection on which its engine works."""
        here = threading.Event()
        engine.answer_with([*self.steps, mark(here), silence])
        with RawClient(url) as client:
            send_request(client, api, stream=self.streaming)
            assert here.wait(10)
            if self.seen is not None:
                assert read_up_to(client.answer(), len(self.seen)) == self.seen
            [request] = engine.requests
            yield client, engine.connections[request.connection - 1]

    @contextmanager
    def crowd(self, url: str, engine: RawEngine, size: int) -> Iterator[list[RawClient]]:
        """As many clients at this moment of their chats."""
        engine.answer_with([*self.steps, silence])
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient(url)) for _ in range(size)]
            for client in clients:
                send_request(client, stream=self.streaming)
            engine.wait_for_requests(size)
            for client in clients:
                if self.seen is not None:
                    assert read_up_to(client.answer(), len(self.seen)) == self.seen
            yield clients


TWO = ev("1") + ev("2")
MOMENTS = {
    "before_the_head": Moment(),
    "in_the_head": Moment(send(b"HTTP/1.1 200 OK\r\nContent-Ty")),
    "after_the_head": Moment(send(head_for("chunked"))),
    "mid_stream": Moment(send(head_for("chunked")), chunks(TWO), seen=TWO),
    "mid_stream_unframed": Moment(send(head_for("close")), send(TWO), seen=TWO),
    "in_a_chunk": Moment(send(head_for("chunked") + b"500\r\n" + TWO), seen=TWO),
    "before_the_last_chunk": Moment(
        send(head_for("chunked")), chunks(STOP + DONE), seen=STOP + DONE),
    "whole_before_the_head": Moment(streaming=False),
    "whole_in_the_body": Moment(
        send(head(200, [*JSON_TYPE, ("Content-Length", "99")]) + b"{"), streaming=False),
    "whole_in_a_chunk": Moment(
        send(head(200, [*JSON_TYPE, *CHUNKED]) + b"99\r\n{"), streaming=False),
    "whole_error_in_the_body": Moment(
        send(head(500, [*JSON_TYPE, ("Content-Length", "99")]) + b"{"), streaming=False),
}
