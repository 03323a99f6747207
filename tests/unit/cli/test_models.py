"""The commands on models that are there: add, ls, show, rm, verify, gc."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.catalog.store.blobs import put_blob
from tests.fakes.whole_gguf import OTHER, PARTS, PROJECTOR, SMALL
from tests.unit.catalog.store.conftest import put_model, sha256
from tests.unit.cli.conftest import Process, Run

RunJson = Callable[..., Any]


def gguf(folder: Path, name: str = "Tiny-Q8_0.gguf", data: bytes = SMALL) -> Path:
    """A file to add."""
    path = folder / name
    path.write_bytes(data)
    return path


def test_a_life_of_a_model(run: Run, home: Path, tmp_path: Path) -> None:
    """Added, listed, shown, verified, removed: each says in a line what it did."""
    assert run("add", gguf(tmp_path))[:2] == (0, "Tiny:Q8_0 is in the registry\n")
    status, out, _ = run("ls")
    rows = [line.split() for line in out.splitlines()]
    assert status == 0 and rows[0] == ["NAME", "SIZE", "QUANT", "PULLED"]
    assert rows[1][:4] == ["Tiny:Q8_0", str(len(SMALL)), "B", "Q8_0"] and len(rows) == 2
    status, out, _ = run("show", "tiny:q8_0")
    assert status == 0 and "architecture   llama\n" in out and "context        4096\n" in out
    assert run("verify")[:2] == (0, "Tiny:Q8_0: Tiny-Q8_0.gguf is good\n")
    assert run("rm", "TINY:q8_0") == (0, "removed Tiny:Q8_0\n", "")
    assert run("gc") == (0, "0 B freed\n", "")
    assert run("ls")[1].splitlines()[1:] == []


def test_add_takes_parts_a_projector_and_a_name(run: Run, home: Path, tmp_path: Path) -> None:
    """And copies if that is asked for."""
    paths = [gguf(tmp_path, name, data) for name, data in PARTS.items()]
    projector = gguf(tmp_path, "mmproj.gguf", PROJECTOR)
    assert run("add", paths[1], "--projector", projector, "--name", "org/x:y", "--copy")[0] == 0
    assert len(list((home / "blobs").iterdir())) == 4
    assert not any((home / "blobs" / f"sha256-{sha256(PROJECTOR)}").samefile(path)
                   for path in (*paths, projector))


def test_every_command_speaks_json(run: Run, run_json: RunJson, home: Path,
                                   tmp_path: Path) -> None:
    """One document each; those that take a while a line for each event."""
    status, out, err = run("add", gguf(tmp_path), "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert events[-1] == {"status": "success", "model": "Tiny:Q8_0"}
    assert events[0]["total"] == events[0]["completed"] == len(SMALL)
    listed = run_json("ls")
    assert [(each["name"], each["size"], each["files"]) for each in listed] == [
        ("Tiny:Q8_0", len(SMALL),
         [{"path": "Tiny-Q8_0.gguf", "size": len(SMALL), "sha256": sha256(SMALL)}])]
    shown = run_json("show", "tiny:q8_0")
    assert shown.items() >= {**listed[0], "architecture": "llama", "context": 4096,
                             "capabilities": ["completion"]}.items()
    assert run_json("verify") == [
        {"model": "Tiny:Q8_0", "file": "Tiny-Q8_0.gguf", "size": len(SMALL), "problem": ""}]
    assert run_json("rm", "tiny:q8_0") == {"removed": ["Tiny:Q8_0"]}
    put_blob(home, BytesIO(OTHER), sha256(OTHER))
    assert run_json("gc") == {"freed": len(OTHER), "removed": [
        {"path": str(home / "blobs" / f"sha256-{sha256(OTHER)}"), "size": len(OTHER),
         "kind": "blob"}]}
    assert run_json("ls") == []


def test_verify_finds_what_is_wrong(run: Run, home: Path) -> None:
    """Exit status 1, and a line for each file; of one model where it is named."""
    put_model(home, "a", {"m.gguf": SMALL})
    put_model(home, "b", {"m.gguf": OTHER})
    (home / "blobs" / f"sha256-{sha256(OTHER)}").write_bytes(bytes(len(OTHER)))
    status, out, _ = run("verify")
    assert status == 1
    assert out.startswith("a: m.gguf is good\nb: m.gguf has other bytes: sha256:")
    assert run("verify", "a")[0] == 0
    assert run("verify", "b", "--json")[0] == 1


@pytest.mark.parametrize("arguments", [
    ("show", "none"), ("rm", "none"), ("verify", "none"), ("add", "none.gguf")])
def test_what_is_not_there_is_told(run: Run, home: Path, arguments: tuple[str, ...]) -> None:
    """Exit status 1 and one line; with --json it is an object."""
    status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (1, "", 1) and "none" in err
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (1, "") and json.loads(out).keys() == {"error"}


@pytest.mark.parametrize("arguments", [["ls"], ["show", "a"], ["verify"], ["models"], ["rm", "a"]])
def test_nothing_is_done_to_a_terminal(run: Run, home: Path, arguments: list[str]) -> None:
    """By what a manifest says: what cannot be seen is escaped."""
    put_model(home, "a", {"m.gguf": SMALL})
    path = home / "models" / "a" / "manifest.json"
    evil = "x\x1b[31m\r\u202e"
    files = [{"path": f"{evil}.gguf", "size": 1, "sha256": evil}]
    told = {**json.loads(path.read_bytes()), "quant": evil, "revision": evil, "files": files}
    path.write_text(json.dumps(told))
    _, out, err = run(*arguments)
    assert out and not [line for line in (out + err).splitlines() if not line.isprintable()]


def test_rm_removes_all_or_none(run: Run, home: Path) -> None:
    """An unknown name among others is told before anything goes."""
    put_model(home, "a", {"m.gguf": SMALL})
    put_model(home, "b", {"m.gguf": OTHER})
    assert run("rm", "a", "none", "b")[0] == 1
    assert run("rm", "a", "B", "a")[1] == "removed a\nremoved b\n"


def test_an_impossible_name_is_wrong_usage(run: Run, home: Path, tmp_path: Path) -> None:
    """Exit status 2, as for wrong arguments."""
    for arguments in (["add", gguf(tmp_path)], ["pull", "org/m"]):
        assert run(*arguments, "--name", "")[0] == 2
    status, _, err = run("add", gguf(tmp_path), "--name", "../x")
    assert status == 2 and "a model cannot be called '../x'" in err
    assert not home.exists()


def test_a_bad_configuration_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every command."""
    monkeypatch.setenv("LOOP_SERVER_PORT", "0")
    status, out, err = run("ls")
    assert (status, out) == (1, "") and "server.port" in err


@pytest.mark.parametrize("command", ["pull", "add", "ls", "show", "rm", "verify", "gc"])
def test_every_command_explains_itself(command: str, run: Run,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    """And is in the list of commands."""
    with pytest.raises(SystemExit) as raised:
        run(command, "--help")
    assert raised.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: python -m app.cli {command}") and "--json" in out
    with pytest.raises(SystemExit):
        run("--help")
    assert f"    {command} " in capsys.readouterr().out


def test_a_name_that_is_no_utf_8(process: Process, home: Path, tmp_path: Path) -> None:
    """Is escaped where it is printed, and in the registry."""
    raw = os.fsencode(tmp_path) + b"/m\xff-Q8_0.gguf"
    with open(raw, "wb") as file:
        file.write(SMALL)
    added = process("add", raw)
    out, err = added.communicate(timeout=60)
    assert (added.returncode, out) == (2, "") and r"m\udcff" in err and "--name" in err
    added = process("add", raw, "--name", "m")
    out, err = added.communicate(timeout=60)
    assert (added.returncode, out) == (0, "m is in the registry\n"), err
    listed = process("ls", "--json").communicate(timeout=60)[0]
    assert json.loads(listed)[0]["files"][0]["path"] == "m%FF-Q8_0.gguf"


def test_a_reader_that_has_enough(process: Process, home: Path) -> None:
    """Ends the command without a stack trace."""
    put_model(home, "m", {"m.gguf": SMALL})
    listing = process("ls")
    assert listing.stdout and listing.stderr
    listing.stdout.close()
    assert listing.stderr.read() == ""
    listing.stderr.close()
    assert listing.wait(60) == 1
