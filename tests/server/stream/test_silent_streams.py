"""Streams whose engine falls silent without closing: given up after the read timeout, once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.fakes.raw_client import RawAnswer, RawClient, request_bytes
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.fakes.stream_steps import framed, head_for
from tests.server.calls import JSON
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import STREAMING, Api
from tests.server.stream.asking import HTTP_10, HTTP_11
from tests.server.stream.outcome import IN_BAND, REFUSED, SUCCESS, last_error, outcome
from tests.server.stream.stream_faults import half_character, half_line, line_without_end


@dataclass(frozen=True)
class Silence:
    """One way to fall silent: the bytes before it, and what a client has to make of them."""

    name: str
    api: Api
    version: str
    sent: bytes
    expected: str

    def problem(self, answer: RawAnswer) -> str:
        """What is wrong with the answer, "" where nothing is."""
        found = outcome(self.api, answer)
        if found == REFUSED and not self.sent and answer.status == 504:
            return ""
        if found != self.expected or not answer.body.startswith(self.sent):
            return f"{found}: {answer.body!r}"
        if self.expected == SUCCESS or self.sent.endswith(self.api.error):
            return "" if answer.body == self.sent else f"more than was sent: {answer.body!r}"
        said = last_error(self.api, answer)["message"]
        return "" if said == "the engine did not answer within 1000 ms" else said


def _silences() -> Iterator[Silence]:
    for api in STREAMING:
        for version in (HTTP_11, HTTP_10):
            for count in (0, 2):
                events = b"".join(api.events(count))
                endings = {
                    "nothing": b"", "half a line": half_line(api),
                    "half a character": half_character(api), "no empty line": line_without_end(api)}
                for name, part in endings.items():
                    yield Silence(f"{api.path} {version} {count} {name}", api, version,
                                  events + part, IN_BAND)
                for name, end, kind in (("its error", api.error, IN_BAND),
                                        ("its end", api.end, SUCCESS)):
                    yield Silence(f"{api.path} {version} {count} {name}", api, version,
                                  events + end, kind)


SILENCES = list(_silences())


def fall_silent(exchange: Exchange) -> None:
    """A script that sends what the request asks for, and then nothing more."""
    silence = SILENCES[json.loads(exchange.request.body)["silence"]]
    exchange.send(head_for("chunked") + framed("chunked", silence.sent))
    exchange.wait(threading.Event())


def ask_for(gateway: GatewayProcess, number: int) -> str:
    """Ask for one silence; what is wrong with the answer."""
    silence = SILENCES[number]
    body = silence.api.body(stream=True, silence=number)
    with RawClient(gateway.url) as client:
        request = request_bytes("POST", silence.api.path, [("Host", client.host), *JSON], body)
        client.send(request.replace(HTTP_11.encode(), silence.version.encode(), 1))
        try:
            return silence.problem(client.answer().whole())
        except AssertionError as error:
            return str(error)


def test_a_stream_that_stalls_ends_once(gateway: GatewayProcess, engine: RawEngine) -> None:
    """With one error, or with none where it had ended already, or had told its own."""
    engine.answer_with(fall_silent)
    with ThreadPoolExecutor(24) as pool:
        problems = pool.map(lambda number: ask_for(gateway, number), range(len(SILENCES)))
        found = {silence.name: problem for silence, problem in zip(SILENCES, problems) if problem}
    assert found == {}
