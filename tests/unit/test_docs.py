"""The documentation names everything there is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from app.api.errors import _TABLE
from app.cli import main
from app.config.schema import ENGINE, KEY, LOOP, SERVER, Section
from app.errors import Kind
from app.factory import create_app
from app.model_status import EngineStatus, ManagedStatus
from app.record import Closer, Record
from app.settings import Settings
from app.telemetry.access_log import FIELDS
from app.telemetry.engine_collector import EngineCollector
from app.telemetry.exposition import MetricsPage
from app.telemetry.metrics import RequestMetrics

ROOT = Path(__file__).parents[2]
DOCS = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])


def read(name: str) -> str:
    """The text of one document."""
    return (ROOT / "docs" / name).read_text("utf-8")


def keys(section: Section, prefix: str = "") -> list[str]:
    """Every key of a section of the configuration, as the documents write it."""
    found = []
    for name, inner in section.items():
        found += keys(inner, f"{name}.") if isinstance(inner, Mapping) else [prefix + name]
    return found


@pytest.mark.parametrize(
    "key", [*keys(SERVER), *keys(LOOP), *keys(ENGINE), *keys(KEY), "keys-file"])
def test_every_setting_is_documented(key: str) -> None:
    """In docs/configuration.md."""
    assert f"`{key}`" in read("configuration.md")


RULES = sorted({rule.rule for rule in create_app(Settings()).url_map.iter_rules()})


@pytest.mark.parametrize("rule", RULES)
def test_every_route_is_documented(rule: str) -> None:
    """In docs/api.md, with its variable parts as a reader would write them."""
    spelled = {"/v1/models/<path:name>": "/v1/models/<name>", "/v1/<path:rest>": "/v1/<anything",
               "/upstream/<path:rest>": "/upstream/<model>/<path>"}.get(rule, rule)
    assert re.search(rf"[` ]{re.escape(spelled)}[` ]", read("api.md")), spelled


@pytest.mark.parametrize(("status", "code"), sorted(
    {(status, code or "null") for status, _, code in _TABLE.values()}))
def test_every_error_is_documented(status: int, code: str) -> None:
    """In the table of docs/errors.md."""
    rows = [line for line in read("errors.md").splitlines() if f"| {status} |" in line]
    assert any(code in row for row in rows)


def test_every_command_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    """As one would write it, in one of the documents that speak of commands."""
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z-]+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    assert {"check-config", "pull", "ls"} <= set(commands)
    documents = read("models.md") + read("configuration.md") + read("operations.md")
    for command in commands:
        assert re.search(rf"`{command}[ `]|app\.cli {command}\b", documents), command


@pytest.mark.parametrize("name", [*FIELDS, *(kind.name.lower() for kind in Kind),
                                  *(closer.value for closer in Closer)])
def test_every_word_of_the_log_is_documented(name: str) -> None:
    """In docs/operations.md: its fields, and what stands in those that have words of their own."""
    assert f"`{name}`" in read("operations.md")


def metrics() -> dict[str, set[str]]:
    """Every metric there can be, with its labels."""
    registry, counted = CollectorRegistry(), RequestMetrics()
    registry.register(counted)
    for closer in Closer:
        counted.end(Record(engine="e", load=1.0, prompt_tokens=1, completion_tokens=1,
                           closed_by=closer))
    managed = ManagedStatus(None, None, 1, 1, None, 1)
    registry.register(EngineCollector(
        lambda: [EngineStatus("e", ("m",), "ready", 1, managed=managed)], lambda: (1, 1)))
    pages = [MetricsPage(registry, list).made().decode(),
             create_app(Settings()).test_client().get("/metrics").text]
    types = {name: kind for page in pages for name, kind in re.findall(
        r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE)}
    found: dict[str, set[str]] = {name: set() for name in types}
    for name, labels in re.findall(r"^([a-z_]+)\{(.*)\} ", "".join(pages), re.MULTILINE):
        metric = name if name in types else re.sub("_(bucket|count|sum)$", "", name)
        found[metric] |= set(re.findall(r'(\w+)="', labels)) - {"le"}
    return found


def test_every_metric_is_documented() -> None:
    """In docs/operations.md, each with its labels, and no other."""
    rows = [line.split("|") for line in read("operations.md").splitlines()
            if re.match(r"\| `(loop|process)_", line)]
    assert metrics() == {
        name: set(re.findall(r"`(\w+)`", row[2]))
        for row in rows for name in re.findall(r"`([a-z_]+)`", row[1])}


@pytest.mark.parametrize("document", DOCS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    """To a file of the repository, and to a heading in it."""
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text("utf-8")):
        name, _, heading = target.partition("#")
        linked = document.parent / name if name else document
        assert linked.is_file(), target
        headings = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
        assert not heading or heading in anchors, target
