"""When a configuration is read again, and when it is refused."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import RawEngine
from tests.server.engines.calling import chat, succeeds
from tests.server.gateway_process import GatewayProcess
from tests.server.running.changing import (
    READ_AGAIN, REFUSED, after, config_of, hang_up, outcomes, text_of, write,
)

BROKEN = {
    "no yaml": ("loop: [", ["is no valid YAML"]),
    "every problem": (
        "server: {port: 0, nope: 1}\nloop: {engines: [{url: nowhere}, {models: [m]}]}",
        ["server.port: 0 must be a whole number", "server.nope: is no key of the configuration",
         "loop.engines[0].url: (not shown) must be the address",
         "loop.engines[0].models: is missing", "loop.engines[1].url: is missing"]),
    "a variable": ("loop: {default-model: '${NOT_SET_ANYWHERE}'}",
                   ["names the variable NOT_SET_ANYWHERE, which is not set"]),
}


@pytest.fixture(scope="module")
def gateway(shared_engine: RawEngine, tmp_path_factory: pytest.TempPathFactory,
            ) -> Iterator[GatewayProcess]:
    """A gateway with one engine for `m`, and an alias that tells its configurations apart."""
    settings = {"loop": {"engines": [{"url": shared_engine.url, "models": ["m"]}],
                         "aliases": {"one": "m"}}}
    with GatewayProcess(tmp_path_factory.mktemp("files"), settings) as found:
        yield found


def replaced(path: Path, text: str) -> None:
    """As editors that are careful write a file, and as a mounted one changes."""
    new = path.with_name("new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def touched(path: Path, text: str) -> None:
    """Of one size with what was there, so that only the time tells."""
    path.write_text(text.ljust(path.stat().st_size), encoding="utf-8")


WAYS: list[Callable[[Path, str], None]] = [replaced, touched]


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_changes_is_read_again(
        gateway: GatewayProcess, engine: RawEngine, way: Callable[[Path, str], None]) -> None:
    """Without a signal, and once."""
    alias = way.__name__
    said = after(gateway, lambda: way(config_of(gateway), text_of(gateway, aliases={alias: "m"})))
    assert READ_AGAIN in said
    succeeds(chat(gateway.url, alias))
    assert chat(gateway.url, "one").status == 404
    count = outcomes(gateway)
    assert READ_AGAIN in hang_up(gateway)
    assert outcomes(gateway) == count + 1


def test_a_file_that_is_being_written_is_left_alone(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Until it has been as it is for a moment: half of it is never looked into."""
    whole = text_of(gateway, aliases={"grown": "m"})
    count, said = outcomes(gateway), len(gateway.log())
    with config_of(gateway).open("w", encoding="utf-8") as file:
        for piece in (whole[:40], "", whole[40:60], "", whole[60:]):
            file.write(piece)
            file.flush()
            signal.sigtimedwait([], 0.4)  # shorter than the time between two looks
    wait_until(lambda: outcomes(gateway) > count, "the new configuration")
    assert REFUSED not in gateway.log()[said:]
    succeeds(chat(gateway.url, "grown"))


@pytest.mark.parametrize(("text", "problems"), BROKEN.values(), ids=BROKEN)
def test_a_broken_configuration_is_refused(
        gateway: GatewayProcess, engine: RawEngine, text: str, problems: list[str]) -> None:
    """All that is wrong with it is told, and the one before goes on to count."""
    good = text_of(gateway, aliases={"good": "m"})
    write(gateway, good)
    hang_up(gateway)
    write(gateway, text)
    said = hang_up(gateway)
    for problem in problems:
        wait_until(lambda problem=problem: problem in gateway.log(), problem)
    assert REFUSED in said and READ_AGAIN not in said
    succeeds(chat(gateway.url, "good"))
    write(gateway, good)
    assert "nothing that can count now has changed" in hang_up(gateway)


def test_a_file_that_is_gone_is_refused(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The one before goes on to count."""
    good = text_of(gateway, aliases={"still": "m"})
    write(gateway, good)
    hang_up(gateway)
    config_of(gateway).unlink()
    assert REFUSED in hang_up(gateway)
    succeeds(chat(gateway.url, "still"))
    write(gateway, good)


def test_what_stays_is_checked_beside_what_is_new(tmp_path: Path, shared_engine: RawEngine) -> None:
    """An address that others reach is not opened to them by a file that would close it."""
    settings = {"server": {"address": "0.0.0.0", "allow-anonymous": True},
                "loop": {"engines": [{"url": shared_engine.url, "models": ["m"]}]}}
    with GatewayProcess(tmp_path, settings) as gateway:
        write(gateway, text_of(gateway, "server", **{"address": None, "allow-anonymous": None}))
        said = hang_up(gateway)
        assert REFUSED in said
        wait_until(lambda: "is not a loopback address" in gateway.log(), "the reason")


def test_many_signals_at_once(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Are as good as one."""
    write(gateway, text_of(gateway, aliases={"many": "m"}))
    for _ in range(200):
        os.kill(gateway.pid, signal.SIGHUP)
    wait_until(lambda: chat(gateway.url, "many").status == 200, "the new configuration")


def test_keys_change(tmp_path: Path, shared_engine: RawEngine, engine: RawEngine) -> None:
    """Also in a file of their own, which is looked at like the others."""
    file = keys_file(tmp_path / "keys.yml", "ann")
    with GatewayProcess(tmp_path, settings_with(file, shared_engine)) as gateway:
        assert [asked(gateway, name) for name in ("ann", "bob")] == [200, 401]
        after(gateway, lambda: keys_file(file, "bob"))
        assert [asked(gateway, name) for name in ("ann", "bob")] == [401, 200]


def test_the_mode_of_a_keys_file_changes(
        tmp_path: Path, shared_engine: RawEngine, engine: RawEngine) -> None:
    """Which is a change of it: opened to others it is refused, and mended as the log says, counts.

    Also of a file that no configuration named yet that was good.
    """
    file = keys_file(tmp_path / "keys.yml", "ann")
    with GatewayProcess(tmp_path, settings_with(file, shared_engine)) as gateway:
        assert REFUSED in after(gateway, lambda: file.chmod(0o640))
        wait_until(lambda: f"run chmod 600 {file}" in gateway.log(), "the remedy")
        assert asked(gateway, "ann") == 200
        assert READ_AGAIN in after(gateway, lambda: file.chmod(0o600))
        other = keys_file(tmp_path / "others.yml", "bob", 0o644)
        gateway.settings["keys-file"] = str(other)
        assert REFUSED in after(gateway, lambda: write(gateway, text_of(gateway)))
        assert READ_AGAIN in after(gateway, lambda: other.chmod(0o600))
        assert [asked(gateway, name) for name in ("ann", "bob")] == [401, 200]


def keys_file(path: Path, name: str, mode: int = 0o600) -> Path:
    """A keys-file with one key, which is its holder's name; it comes there at one stroke."""
    new = path.with_name("keys.new")
    new.write_text(f"- {{name: {name}, sha256: {sha256(name.encode()).hexdigest()}}}\n")
    new.chmod(mode)
    return new.replace(path)


def settings_with(file: Path, engine: RawEngine) -> dict[str, Any]:
    """Those of a gateway with this keys-file, and an engine for `m`."""
    return {"keys-file": str(file),
            "loop": {"engines": [{"url": engine.url, "models": ["m"]}]}}


def asked(gateway: GatewayProcess, key: str) -> int:
    """The status of a chat with this key."""
    return chat(gateway.url, "m", headers=[("Authorization", f"Bearer {key}")]).status
