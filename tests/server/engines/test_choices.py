"""An engine gets no call for more answers than it gives, by either name for their number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import CHAT, openai_error, post
from tests.server.engines.calling import body
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, attached

PATHS = [CHAT, "/v1/completions", "/completion", "/completions", "/chat/completions"]


@pytest.fixture(scope="module")
def single() -> Iterator[RawEngine]:
    """An engine that gives one answer to a call."""
    with RawEngine(reply()) as found:
        found.probe_script = reply(200, b'{"status":"ok"}')
        yield found


@pytest.fixture(scope="module")
def gateway(start: Start, single: RawEngine) -> ManagedGateway:
    """A gateway that knows that."""
    return start([attached(single.url, "m", **{"max-choices": 1})])


@pytest.mark.parametrize("name", ["n", "n_cmpl"])
@pytest.mark.parametrize("path", PATHS)
def test_more_than_the_engine_gives_are_refused(
        gateway: ManagedGateway, single: RawEngine, path: str, name: str) -> None:
    """The error names the field that was given; one answer is fine."""
    single.answer_with(reply())
    refused = post(gateway.url, path, body("m", prompt="hi", **{name: 2}))
    assert (refused.status, openai_error(refused)["param"]) == (400, name)
    assert single.requests == []
    assert post(gateway.url, path, body("m", prompt="hi", **{name: 1})).status == 200
