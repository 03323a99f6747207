"""A hub that fails: what is tried again, what is told, and that nothing half is listed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.catalog.hub.client import Hub
from app.catalog.hub.patience import Patience
from app.catalog.hub.pull import Wanted, pull
from app.catalog.hub.reference import parse
from app.catalog.problems import CatalogError, HubRefused, HubUnavailable, NotFound, WrongContent
from app.catalog.registry import Registry
from tests.fakes.hub import FakeHub, Fault
from tests.fakes.whole_gguf import LARGE, SMALL
from tests.unit.catalog.hub.conftest import Pull

HTML = b"<html><body>Please log in</body></html>"


def is_whole(home: Path, data: bytes) -> bool:
    """Whether the registry has one model of one file with these bytes, and no rest."""
    entries = Registry(home).entries()
    return (len(entries) == 1 and entries[0].first_file.read_bytes() == data
            and not list(home.glob("blobs/.*")))


@pytest.mark.parametrize("fault", [
    Fault("storage", cut=0), Fault("storage", cut=1), Fault("storage", cut=1_000_000),
    Fault("storage", cut=len(LARGE) - 1), Fault("resolve", cut=0),
    *(Fault(where, status=status) for where in ("api", "resolve", "storage")
      for status in (429, 500, 502, 503, 504, 408))], ids=repr)
def test_what_passes_is_waited_for(hub: FakeHub, bring: Pull, tmp_path: Path,
                                   fault: Fault) -> None:
    """Cuts and the statuses of a busy hub, at each of its addresses; it goes on from the byte."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    hub.faults = [fault]
    bring("org/m")
    assert is_whole(tmp_path, LARGE)
    ranges = [seen.headers.get("Range") for seen in hub.asked("storage")]
    assert ranges[-1] == (f"bytes={fault.cut}-" if fault.cut else None)


def test_cuts_do_not_count_while_it_gets_on(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """Only tries that bring nothing are limited."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    hub.faults = [Fault("storage", cut=100_000) for _ in range(10)]
    bring("org/m")
    assert is_whole(tmp_path, LARGE)


def test_a_hub_that_stays_away_is_given_up(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """After as many tries as there are waits; what has come stays."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    hub.faults = [Fault("storage", cut=1_000_000), *(Fault("storage", cut=0) for _ in range(3))]
    with pytest.raises(HubUnavailable, match="start it again, and it goes on from there"):
        bring("org/m")
    assert not Registry(tmp_path).entries()
    bring("org/m")
    assert hub.asked("storage")[-1].headers["Range"] == "bytes=1000000-"
    assert is_whole(tmp_path, LARGE)


def test_a_silent_hub_is_given_up(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """One that sends no byte for too long counts as a cut."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    holds = [Fault("storage", cut=size, hold=threading.Event()) for size in (1000, 0)]
    hub.faults = list(holds)
    try:
        with pytest.raises(HubUnavailable, match="does not answer in time"):
            bring("org/m", Patience(()))
        bring("org/m", Patience((0,)))
    finally:
        for fault in holds:
            assert fault.hold
            fault.hold.set()
    assert is_whole(tmp_path, LARGE)


@pytest.mark.parametrize(("said", "waited"), [("0", True), ("121", False), ("soon", True)])
def test_the_hub_says_when_to_come_back(hub: FakeHub, bring: Pull, said: str,
                                        waited: bool) -> None:
    """A wait that is short is kept, a long one is told."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    hub.faults = [Fault("api", status=429, headers={"Retry-After": said})]
    if waited:
        assert "trying again in 0 s" in [event.status for event in bring("org/m")]
        return
    with pytest.raises(HubUnavailable, match="answers 429: try again in 121 s") as caught:
        bring("org/m")
    assert caught.value.wait == 121


@pytest.mark.parametrize("resumed", [False, True])
def test_wrong_bytes_are_no_model(hub: FakeHub, bring: Pull, tmp_path: Path,
                                  resumed: bool) -> None:
    """Nor do they stay; those of an earlier try are brought anew before it is told."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    if resumed:
        hub.faults = [Fault("storage", cut=1000)]
        with pytest.raises(HubUnavailable):
            bring("org/m", Patience(()))
    hub.faults = [Fault("storage", body=bytes(len(LARGE))) for _ in range(1 + resumed)]
    with pytest.raises(WrongContent, match="is not what it lists: expected sha256:.*, got sha256:"):
        bring("org/m")
    assert not Registry(tmp_path).entries() and not list((tmp_path / "blobs").iterdir())
    bring("org/m")
    assert is_whole(tmp_path, LARGE)


def test_a_file_that_is_shorter_than_listed(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """Is told, and what came of it does not stand in the way of the next try."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    hub.faults = [Fault("storage", body=LARGE[:1000]) for _ in range(2)]
    with pytest.raises(WrongContent, match="has less of a file than org/m lists: start again"):
        bring("org/m")
    assert not Registry(tmp_path).entries() and not list((tmp_path / "blobs").iterdir())
    bring("org/m")
    assert is_whole(tmp_path, LARGE)


def test_a_damaged_beginning_is_brought_anew(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """What an earlier try left may have been lost in a power cut."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    hub.faults = [Fault("storage", cut=500_000)]
    with pytest.raises(HubUnavailable):
        bring("org/m", Patience(()))
    left = next(tmp_path.glob("blobs/.*.partial"))
    left.write_bytes(bytes(left.stat().st_size))
    bring("org/m")
    assert is_whole(tmp_path, LARGE)


@pytest.mark.parametrize("left", [LARGE[:1000], LARGE, LARGE + b"more", b""])
def test_whatever_is_left_is_used_or_not(hub: FakeHub, bring: Pull, tmp_path: Path,
                                         left: bytes) -> None:
    """Also a file that was whole but not yet called so, and one that is too long."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    hub.faults = [Fault("storage", cut=10)]
    with pytest.raises(HubUnavailable):
        bring("org/m", Patience(()))
    next(tmp_path.glob("blobs/.*.partial")).write_bytes(left)
    bring("org/m")
    assert is_whole(tmp_path, LARGE)


@pytest.mark.parametrize("answer", [{"whole": True}, {"body": LARGE + b"more"}])
def test_a_hub_without_ranges(hub: FakeHub, bring: Pull, tmp_path: Path,
                              answer: dict[str, object]) -> None:
    """Is taken from the beginning again; more than was announced is not taken."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    hub.faults = [Fault("storage", cut=1_000_000), Fault("storage", **answer)]
    bring("org/m")
    assert is_whole(tmp_path, LARGE)


def require_refusal(bring: Pull, kind: type[CatalogError], said: str) -> None:
    """The error of a pull of org/m is of this kind, and one line for people that says this."""
    with pytest.raises(kind, match=said) as caught:
        bring("org/m")
    assert str(caught.value).isprintable()
    assert "token-of-mine" not in str(caught.value)


@pytest.mark.parametrize(("gated", "token", "kind", "said"), [
    (False, None, NotFound, "no repository org/m on http.*, or it is private: .*HF_TOKEN"),
    (False, "token-of-mine", NotFound, "no repository org/m on http.*, or it is private"),
    (True, None, HubRefused, "accept them at http.*/org/m, and set HF_TOKEN"),
    (True, "token-of-mine", HubRefused, "accept them at http.*/org/m, and set HF_TOKEN"),
])
def test_what_is_not_for_everyone(hub: FakeHub, bring: Pull, monkeypatch: pytest.MonkeyPatch,
                                  gated: bool, token: str | None, kind: type[CatalogError],
                                  said: str) -> None:
    """Private and gated repositories, without a token and with one that may not."""
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    hub.add("org/m", {"m-Q8_0.gguf": SMALL}, token="of-another-one", gated=gated)
    require_refusal(bring, kind, said)


def test_the_token_opens_and_stays_with_the_hub(hub: FakeHub, bring: Pull, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage, which is another server, never gets it."""
    monkeypatch.setenv("HF_TOKEN", "token-of-mine")
    hub.add("org/m", {"m-Q8_0.gguf": SMALL}, token="token-of-mine")
    bring("org/m")
    assert is_whole(tmp_path, SMALL)
    sent = {where: hub.asked(where)[0].headers.get("authorization")
            for where in ("api", "resolve", "storage")}
    assert sent == {"api": "Bearer token-of-mine", "resolve": "Bearer token-of-mine",
                    "storage": None}


def test_nothing_else_is_asked(hub: FakeHub, bring: Pull) -> None:
    """No telemetry: one request for the list, two for a file, whose bytes come as they are."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    bring("org/m")
    assert [seen.where for seen in hub.requests] == ["api", "resolve", "storage"]
    assert hub.asked("storage")[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(("fault", "said"), [
    (Fault("api", status=404), "no repository|has not what"),
    (Fault("api", status=401), "refuses org/m: set HF_TOKEN"),
    (Fault("resolve", status=403), "refuses org/m: set HF_TOKEN"),
    (Fault("resolve", status=404), "has not what org/m lists"),
    (Fault("api", status=418), "answers 418: check HF_ENDPOINT"),
    (Fault("api", body=HTML), "does not answer as a hub does: check HF_ENDPOINT"),
    (Fault("api", body=b"[]"), "does not answer as a hub does"),
    (Fault("api", body=b"{}"), "does not answer as a hub does"),
    (Fault("api", body=b"[" * 100_000), "does not answer as a hub does"),
    (Fault("api", body=b'{"id":"org/m","sha":"x","siblings":[{"rfilename":"a.gguf","size":1,'
                       b'"lfs":{"sha256":"../../x","size":1,"pointerSize":1}}]}'),
     "'../../x' is no SHA-256 digest"),
    (Fault("resolve", status=302, headers={"Location": "http://127.0.0.1:1/x"}), "connection to"),
    (Fault("resolve", status=302, headers={"Location": "ftp://x/x"}), "no address|not answer as"),
], ids=lambda value: repr(value)[:60])
def test_other_answers_are_told(hub: FakeHub, bring: Pull, tmp_path: Path, fault: Fault,
                                said: str) -> None:
    """In one sentence; nothing is listed."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    hub.faults = [fault] * 3
    require_refusal(bring, CatalogError, said)
    assert not Registry(tmp_path).entries()


@pytest.mark.parametrize(("endpoint", "said"), [
    ("http://127.0.0.1:1", "the connection to http://127.0.0.1:1 failed .*check the network"),
    ("nonsense", "nonsense is no address: check HF_ENDPOINT"),
])
def test_a_hub_that_is_not_there_is_told(tmp_path: Path, endpoint: str, said: str) -> None:
    """With its address and what to check."""
    wanted = Wanted(parse("org/m"))
    with pytest.raises(HubUnavailable, match=said):
        list(pull(tmp_path, wanted, Hub(endpoint), Patience(())))


def test_offline_is_told(hub: FakeHub, bring: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment forbids to ask the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    with pytest.raises(HubUnavailable, match="HF_HUB_OFFLINE is set"):
        bring("org/m")
    assert not hub.requests
