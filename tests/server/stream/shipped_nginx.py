"""nginx with the project's own configuration, only its two addresses changed."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

from tests.fakes.processes import wait_until
from tests.server.gateway_process import ROOT, free_port

LISTEN = "listen 8080;"
GATEWAY = "server 127.0.0.1:11434;"


def configuration(port: int, gateway: int) -> str:
    """etc/nginx.conf that listens on `port` and asks a gateway on `gateway`."""
    text = (ROOT / "etc" / "nginx.conf").read_text(encoding="utf-8")
    for address in (LISTEN, GATEWAY):
        assert text.count(address) == 1, f"{address!r} stands {text.count(address)} times"
    return text.replace(LISTEN, f"listen 127.0.0.1:{port};").replace(
        GATEWAY, f"server 127.0.0.1:{gateway};")


class ShippedNginx:
    """nginx before the gateway on this port, from entering to leaving the context."""

    def __init__(self, directory: Path, gateway: int) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._directory = directory
        self._config = directory / "nginx.conf"
        self._config.write_text(self._configuration(gateway), encoding="utf-8")

    def _configuration(self, gateway: int) -> str:
        return configuration(self.port, gateway)

    def __enter__(self) -> ShippedNginx:
        binary = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        assert binary, "nginx is missing (Debian: apt-get install nginx)"
        command = [binary, "-p", str(self._directory), "-c", str(self._config), "-g", "daemon off;"]
        with (self._directory / "nginx.out").open("wb") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            wait_until(self._listens, "nginx to listen")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def said(self) -> str:
        """What it has written so far."""
        return (self._directory / "nginx.out").read_text(encoding="utf-8")

    def _listens(self) -> bool:
        assert self._process.poll() is None, self.said()
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True


class TlsNginx(ShippedNginx):
    """The same with its lines for TLS, and without the one for plain HTTP.

    The certificate of `localhost` is its own authority; it lies in `certificate`.
    """

    def __init__(self, directory: Path, gateway: int) -> None:
        self.certificate = directory / "loop-gateway.pem"
        self._key = directory / "loop-gateway.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", self._key, "-out", self.certificate],
            check=True, capture_output=True)
        super().__init__(directory, gateway)

    def _configuration(self, gateway: int) -> str:
        plain = super()._configuration(gateway)
        text = re.sub(r"^( +)# (?=listen \S+ ssl;|ssl_\w+ )", r"\1", plain, flags=re.MULTILINE)
        assert text.count("\n        ssl_") >= 5, text
        changes = {
            f"listen 127.0.0.1:{self.port};": "",
            "listen 8443 ssl;": f"listen 127.0.0.1:{self.port} ssl;",
            "/etc/ssl/certs/loop-gateway.pem": str(self.certificate),
            "/etc/ssl/private/loop-gateway.key": str(self._key)}
        for old, new in changes.items():
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
            text = text.replace(old, new)
        return text
