"""What a gateway may say to whatever comes in over a connection, and what not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.strict_json import strict_json
from tests.fakes.wire import Cut, Malformed
from tests.fuzz.chance import made

CLIENTS = 8
PATIENCE = 10.0  # s; far more than any limit of the gateway that is tried
BODY_TIMEOUT = "500ms"
_SHOWN = 600  # bytes of a request
_JSON = ("application/json", "application/problem+json")
NOTHING = 0  # the status of what was not answered, as it was no whole request


class Verdicts:
    """What was answered, by status, and what should not have been. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []

    def note(self, data: bytes, status: int, fault: str) -> None:
        """One connection is over; ``fault`` is empty where all was well."""
        with self._lock:
            self.statuses[status] += 1
            if fault:
                self.faults.append(f"{fault}: {data[:_SHOWN]!r}")


def try_all(url: str, count: int, seed: int) -> Verdicts:
    """Make so many connections, each of which says what chance says; the same ones for a seed."""
    verdicts = Verdicts()

    def one(number: int) -> None:
        random = Random(f"{seed} {number}")
        data, ends = made(random), random.random() < 0.3
        verdicts.note(data, *_answer_to(url, data, ends))

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(one, range(count)))
    return verdicts


def _answer_to(url: str, data: bytes, ends: bool) -> tuple[int, str]:
    """The status of the first answer, and what is wrong with it."""
    method = "HEAD" if data.lstrip(b"\r\n").startswith(b"HEAD ") else "GET"
    with RawClient(url, PATIENCE) as client:
        try:
            client.send(data)
            if ends:
                client.end()
        except ConnectionError:
            pass  # it has heard enough, and may have said so
        try:
            answer = client.answer(method).whole()
        except Cut:
            return NOTHING, ""
        except TimeoutError:
            return NOTHING, f"no answer and no end within {PATIENCE:.0f} s"
        except Malformed as error:
            return NOTHING, f"no HTTP ({error})"
        return answer.status, next(_wrong(answer), "")


def _wrong(answer: RawAnswer) -> Iterator[str]:
    kind = answer.header("Content-Type")
    if answer.status == 500:
        yield f"500 {answer.body!r}"
    if answer.cut:
        yield f"{answer.status} cut short"
    if not answer.body:
        return
    if answer.status >= 400 and kind not in _JSON:
        yield f"{answer.status} with {kind}"
    if kind in _JSON:
        try:
            strict_json(answer.body)
        except ValueError:
            yield f"{answer.status} with {answer.body[:100]!r}"
