"""Keys in the configuration and in a file of their own: all problems at once, and none shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from app.cli import main
from app.config import ConfigError, load
from app.keys import hash_of
from app.settings import KeySettings, Settings

ONE, TWO, THREE = (hash_of(text) for text in ("one", "two", "three"))
SECRET = "sk-0123456789"


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    """A file with this content and mode."""
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def loaded(directory: Path, text: str, **variables: str) -> Settings:
    """The settings of one file with this content."""
    return load({"LOOP_CONFIG": str(write(directory / "gateway.yml", text)), **variables})


def problems(directory: Path, text: str) -> list[str]:
    """Path and rule of each problem of a file with this content."""
    with pytest.raises(ConfigError) as raised:
        loaded(directory, text)
    assert SECRET not in str(raised.value)
    return [f"{problem.path}: {problem.rule}" for problem in raised.value.problems]


ENTRIES = f"""
- name: alice
  sha256: {ONE}
- {{name: bob, sha256: {TWO.upper()}, models: [org/*], max_priority: low}}
"""
KEYS = (KeySettings("alice", ONE),
        KeySettings("bob", TWO, models=("org/*",), max_priority="LOW"))


def test_keys_stand_in_the_configuration(tmp_path: Path) -> None:
    """With their defaults: every model, calls only, no limits."""
    assert loaded(tmp_path, f"keys:{ENTRIES}").keys == KEYS


def test_keys_may_come_from_a_variable(tmp_path: Path) -> None:
    """As a list, in which other variables are put in."""
    found = loaded(tmp_path, "", LOOP_KEYS="[{name: alice, sha256: '${HASH}'}]", HASH=ONE)
    assert found.keys == KEYS[:1]


@pytest.mark.parametrize("text", [ENTRIES, f"keys:{ENTRIES}", f"# mine\n---\n{ENTRIES}"])
@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_keys_stand_in_a_file_of_their_own(tmp_path: Path, text: str, mode: int) -> None:
    """A list, as it is or under keys."""
    file = write(tmp_path / "keys.yml", text, mode)
    found = loaded(tmp_path, f"keys-file: {file}")
    assert (found.keys, found.keys_file) == (KEYS, file)


def test_both_are_taken_together(tmp_path: Path) -> None:
    """Those of the configuration come first."""
    file = write(tmp_path / "keys.yml", ENTRIES)
    found = loaded(tmp_path, f"keys: [{{name: carol, sha256: {THREE}}}]\nkeys-file: {file}")
    assert found.keys == (KeySettings("carol", THREE), *KEYS)


@pytest.mark.parametrize("text", ["", "[]", "keys:", "keys: []", "# nothing yet"])
def test_a_file_without_keys_is_refused(tmp_path: Path, text: str) -> None:
    """A gateway that lost its keys must not serve everyone."""
    [told] = problems(tmp_path, f"keys-file: {write(tmp_path / 'k.yml', text)}")
    assert told == ": must hold a list of keys; without keys-file the gateway has none"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o610, 0o602, 0o777])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """The problem is the command that mends it; the keys are not used."""
    file = write(tmp_path / "keys.yml", ENTRIES, mode)
    [told] = problems(tmp_path, f"keys-file: {file}")
    assert told == (f": is open to others than its owner (mode {mode:04o}); run chmod 600 {file}")
    file.chmod(0o600)
    assert loaded(tmp_path, f"keys-file: {file}").keys == KEYS


def test_what_a_link_leads_to_counts(tmp_path: Path) -> None:
    """The mode is that of the file that is read."""
    link = tmp_path / "link.yml"
    link.symlink_to(write(tmp_path / "keys.yml", ENTRIES, 0o644))
    assert len(problems(tmp_path, f"keys-file: {link}")) == 1


@pytest.mark.parametrize(("text", "rule"), [
    ("alice", "must hold a list of keys"), ("{alice: x}", "must hold a list of keys"),
    (f"{{keys: [], more: {SECRET}}}", "must hold a list of keys"),
    (f"keys: {SECRET}", "must hold a list of keys"),
    (f"[{{name: a, sha256: {SECRET}", "is no valid YAML"),
    (f"- {SECRET}\n  - x: {SECRET}: y", "is no valid YAML"),
])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    """Without a word of what stands in it."""
    [told] = problems(tmp_path, f"keys-file: {write(tmp_path / 'k.yml', text)}")
    assert told.startswith(f": {rule}")


@pytest.mark.parametrize(("make", "rule"), [
    (lambda path: None, "keys-file: names a file that cannot be read: No such file"),
    (lambda path: path.mkdir(), "keys-file: names a file that cannot be read: Is a directory"),
    (lambda path: path.write_bytes(b"\xff\xfe") and path.chmod(0o600), ": is no valid YAML")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, make: object, rule: str) -> None:
    """The reason is told, and no other problem."""
    make(tmp_path / "k.yml")  # type: ignore[operator]
    [told] = problems(tmp_path, f"keys-file: {tmp_path / 'k.yml'}")
    assert told.startswith(rule)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody may write to it for ever; so there are no keys in it."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert len(problems(tmp_path, f"keys-file: {tmp_path / 'pipe'}")) == 1


PLAIN = "must be the SHA-256 of a key in 64 hex digits, never the key itself; "
WRONG = f"""
keys:
- {{name: a, sha256: {SECRET}}}
- {{name: a, sha256: {ONE}}}
- {{name: b, sha256: "{ONE.upper()}", {SECRET}: 1, rate: often}}
- {{sha256: {TWO}, scopes: [root]}}
- {SECRET}
- {{name: c}}
- {{name: d, sha256: {THREE}, max-priority: LOW, max_priority: LOW}}
"""


def test_every_problem_of_every_key_is_told(tmp_path: Path) -> None:
    """What is missing, wrong, unknown or there twice; a plain key is not repeated."""
    where = f"{tmp_path / 'gateway.yml'}"
    told = problems(tmp_path, WRONG)
    assert [each.split(": ")[0] for each in told] == [
        "keys[0].sha256", "keys[1].name", "keys[2]", "keys[2].rate", "keys[2].sha256",
        "keys[3].name", "keys[3].scopes", "keys[4]", "keys[5].sha256", "keys[6].max_priority"]
    assert told[0].startswith(f"keys[0].sha256: {PLAIN}")
    assert told[1] == f"keys[1].name: is that of keys[0] of {where} too; each has its own"
    assert told[4] == f"keys[2].sha256: is that of keys[1] of {where} too; each has its own"
    assert "keys new NAME" in told[8]


def test_a_key_that_stands_in_both_places_is_refused(tmp_path: Path) -> None:
    """Which entry would count, nobody could say."""
    file = write(tmp_path / "keys.yml", ENTRIES)
    told = problems(tmp_path, f"keys: [{{name: carol, sha256: {ONE}}}]\nkeys-file: {file}")
    where = tmp_path / "gateway.yml"
    assert told == [f"keys[0].sha256: is that of keys[0] of {where} too; each has its own"]


def test_a_new_key_works_where_it_is_pasted(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the command prints is the key, once, and its entry."""
    assert main(["keys", "new", "al: \"ice\""]) == 0
    out, err = capsys.readouterr()
    [key] = [word for word in out.split() if word.startswith("loop-")]
    entry = out[out.index("- name:"):]
    assert err == "" and key not in entry
    [found] = loaded(tmp_path, f"keys:\n{entry}").keys
    assert (found.name, found.sha256) == ('al: "ice"', hash_of(key))


def test_a_new_key_can_be_read_by_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """As one JSON object; no two keys are alike."""
    made = []
    for _ in range(2):
        assert main(["keys", "new", "--json", "ü"]) == 0
        made.append(yaml.safe_load(capsys.readouterr().out))
    assert made[0]["key"] != made[1]["key"]
    assert made[0] == {"key": made[0]["key"], "name": "ü", "sha256": hash_of(made[0]["key"])}


@pytest.mark.parametrize("arguments", [
    ["keys"], ["keys", "new"], ["keys", "old", "x"], ["keys", "new", "a", "b"]])
def test_wrong_usage_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is made."""
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2 and "loop-" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 65])
def test_a_name_that_no_entry_could_have_is_refused(
        name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a key is made."""
    assert main(["keys", "new", name]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("the name must be")
