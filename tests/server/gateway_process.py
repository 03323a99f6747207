"""The gateway as its users run it: gunicorn in a process of its own, on a real port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.fakes.raw_client import fetch
from tests.fakes.strict_json import strict_json

ROOT = Path(__file__).parents[2]
START_LIMIT = 20.0
STOP_LIMIT = 10.0


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class GatewayProcess:
    """A gateway with the configuration `settings` (its `server.port` is added), serving from
    entering to leaving the context. Its files lie in `directory`. Leaving raises AssertionError
    when it does not end by itself within ten seconds, or when its log has a stack trace.
    `environment` has more variables for it.
    """

    def __init__(self, directory: Path, settings: dict[str, Any],
                 environment: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self._more = dict(environment or {})
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = {**settings}
        self.settings["server"] = {"threads": 16, **settings.get("server", {}), "port": self.port}
        self._log = directory / "gateway.log"
        self._access_log = directory / "access.log"

    def __enter__(self) -> GatewayProcess:
        config = self.directory / "gateway.yml"
        config.write_text(yaml.safe_dump(self.settings, allow_unicode=True), encoding="utf-8")
        command = [sys.executable, "-m", "gunicorn", "-c", "etc/gunicorn.conf.py",
                   "wsgi:application"]
        with self._log.open("wb") as log, self._access_log.open("wb") as access_log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment(config), stdout=access_log, stderr=log)
        try:
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        code, log = self.stop(), self.log()
        assert code == 0, f"the gateway ended with {code}; its log:\n{log}"
        assert "Traceback" not in log, log

    def _environment(self, config: Path) -> dict[str, str]:
        # A proxy that leads nowhere and a login for every host: a gateway that minds either
        # does not reach its engines, or tells them a password.
        netrc = self.directory / ".netrc"
        netrc.write_text("default login netrc-user password netrc-secret\n", encoding="utf-8")
        netrc.chmod(0o600)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.directory), "LOOP_CONFIG": str(config),
                "HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1",
                **self._more}

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                if fetch(self.url, "GET", "/health").status == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError(f"the gateway did not come up; its log:\n{self.log()}")

    def log(self) -> str:
        """What it has written to standard error so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def access_log(self) -> str:
        """What it has written to standard output so far: a line for each request."""
        return self._access_log.read_text(encoding="utf-8", errors="replace")

    def requests(self) -> list[dict[str, Any]]:
        """The requests that it has logged as JSON, in the order of their ends."""
        return [strict_json(line.encode()) for line in self.access_log().splitlines()]

    @property
    def pid(self) -> int:
        """The process id of its gunicorn master."""
        return self._process.pid

    def workers(self) -> list[int]:
        """The process ids of its gunicorn workers."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(child) for child in children.split()]

    def stop(self) -> int:
        """End it by SIGTERM, after ten seconds by SIGKILL; gives its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
