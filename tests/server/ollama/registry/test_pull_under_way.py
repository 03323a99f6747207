"""Pulls that take a while: clients that leave, and several that want the same."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.catalog.store import partial
from tests.fakes.hub import FakeHub, Fault
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient, request_bytes
from tests.fakes.whole_gguf import LARGE, SMALL, whole
from tests.server.calls import JSON, get, to_bytes
from tests.server.ollama.registry.asking import PULL, Registered, digest_of, events_of

HELD = 1_000_000  # bytes


def held(hub: FakeHub, *repos: str) -> Fault:
    """A hub with these repositories, whose next file stops half way."""
    for repo in repos:
        hub.add(repo, {"m-Q8_0.gguf": LARGE})
    fault = Fault("storage", cut=HELD, hold=threading.Event())
    hub.faults = [fault]
    return fault


def unfinished(served: Registered) -> Path:
    """Where the large file grows."""
    return served.home / "blobs" / f".{digest_of(LARGE).replace(':', '-')}.partial"


def is_left(path: Path) -> bool:
    """Whether nobody writes it any more."""
    found = partial.try_open(path)
    if found:
        found.close()
    return found is not None


@pytest.mark.parametrize("reset", [False, True])
def test_a_pull_ends_with_its_client(hub: FakeHub, served: Registered, reset: bool) -> None:
    """Though no byte comes from the hub; what has come stays, and the next pull goes on there."""
    fault = held(hub, "org/m")
    with served.pulling("org/m") as (client, events):
        assert next(events) == {"status": "pulling manifest"}
        assert fault.reached.wait(20) and next(events)["status"].startswith("pulling ")
        client.reset() if reset else client.close()
        wait_until(lambda: is_left(unfinished(served)), "the end of the pull", 5)
    size = unfinished(served).stat().st_size
    assert size and served.names() == []
    assert events_of(served.pull("org/m").body)[-1] == {"status": "success"}
    assert hub.asked("storage")[-1].headers["Range"] == f"bytes={size}-"
    assert fault.hold
    fault.hold.set()


def test_a_pull_ends_though_the_hub_says_nothing(hub: FakeHub, served: Registered) -> None:
    """Not even which files there are: the place of the request is free again."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    faults = [Fault("api", hold=threading.Event()) for _ in range(13)]
    hub.faults = list(faults)
    for fault in faults:  # more than there are places
        with served.pulling("org/m") as (_, events):
            assert next(events) == {"status": "pulling manifest"} and fault.reached.wait(20)
    assert events_of(served.pull("org/m").body)[-1] == {"status": "success"}
    for fault in faults:
        assert fault.hold
        fault.hold.set()


def test_a_pull_without_a_stream_ends_with_its_client(hub: FakeHub, served: Registered) -> None:
    """Though nothing has been said to it yet."""
    fault = held(hub, "org/m")
    with RawClient(served.url) as client:
        body = to_bytes({"model": "org/m", "stream": False})
        client.send(request_bytes("POST", PULL, [("Host", client.host), *JSON], body))
        wait_until(lambda: partial.size_so_far(unfinished(served)), "the first bytes", 20)
    wait_until(lambda: is_left(unfinished(served)), "the end of the pull", 5)
    assert unfinished(served).stat().st_size and served.names() == []
    assert fault.hold
    fault.hold.set()


def test_two_clients_see_one_download(hub: FakeHub, served: Registered) -> None:
    """Of the same file, under two names; the second goes on where the first one left."""
    fault = held(hub, "org/m")
    with served.pulling("org/m") as (client, events):
        while "completed" not in next(events):
            pass
        assert fault.reached.wait(20)
        with served.pulling("hf.co/org/m") as (_, others):
            while next(others).get("completed", 0) < HELD // 2:
                pass
            assert len(hub.asked("storage")) == 1
            client.close()
            rest = list(others)
    assert rest[-1] == {"status": "success"}
    done = [event["completed"] for event in rest if event.get("completed")]
    assert done == sorted(done) and done[-1] == len(LARGE)
    begin = int(hub.asked("storage")[-1].headers["Range"].removeprefix("bytes=").rstrip("-"))
    assert begin >= HELD // 2 and served.names() == ["hf.co/org/m:latest"]
    assert fault.hold
    fault.hold.set()


def test_pulls_leave_the_others_their_threads(hub: FakeHub, served: Registered) -> None:
    """Four of them need no place of a call's, each further one takes one; then it is a 503."""
    names = [f"org/m{number}" for number in range(13)]
    fault = held(hub, *names)
    with ExitStack() as stack:
        for name in names[:-1]:
            _, events = stack.enter_context(served.pulling(name))
            next(events)
        assert fault.reached.wait(20)
        refused = served.pull(names[-1])
        assert refused.status == 503 and refused.header("Retry-After")
        assert get(served.url, "/health").status == 200
        assert fault.hold
        fault.hold.set()


def test_a_disk_that_is_too_small(hub: FakeHub, served: Registered) -> None:
    """Is told before anything is brought."""
    repo = hub.add("org/m", {"m-Q8_0.gguf": whole()})
    digest = digest_of(repo.files["m-Q8_0.gguf"]).removeprefix("sha256:")
    repo.listed["m-Q8_0.gguf"] = {
        "lfs": {"sha256": digest, "size": 10**18, "pointerSize": 130}}
    assert "needs 1000000000033 MB" in events_of(served.pull("org/m").body)[-1]["error"]
    assert served.pull("org/m", stream=False).status == 507
    assert hub.asked("storage") == []
