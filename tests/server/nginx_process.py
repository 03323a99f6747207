"""nginx in front of a gateway, in a process of its own, on a free port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.server.gateway_process import free_port

START_LIMIT = 10.0

_FRAME = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
{user}
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port};
    {server}
  }}
}}
"""


class NginxProcess:
    """nginx with `server` as the inside of its one server block, from entering to leaving."""

    def __init__(self, directory: Path, server: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._directory = directory
        # The workers of a root nginx would be nobody, who may not read a test's directory.
        user = "user root;" if os.geteuid() == 0 else ""
        self._config = directory / "nginx.conf"
        self._config.write_text(
            _FRAME.format(directory=directory, port=self.port, server=server, user=user),
            encoding="utf-8")

    def __enter__(self) -> NginxProcess:
        binary = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        assert binary, "nginx is missing: scripts/test installs it (Debian: apt-get install nginx)"
        command = [binary, "-p", str(self._directory), "-e", "stderr", "-c", str(self._config)]
        with (self._directory / "nginx.out").open("wb") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        self._wait_until_listening()
        return self

    def _wait_until_listening(self) -> None:
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.02)
        self.__exit__()
        said = (self._directory / "nginx.out").read_text(encoding="utf-8")
        raise AssertionError(f"nginx did not come up: {said}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
