"""nginx as a plain proxy with one worker, kept connections to the engine and no buffering."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.launch import Command, Running, Site, StartError, free_port
from tests.bench.launch import running as started

NAME = "nginx"
MOST_STREAMS = 10_000
PICTURES = True

_CONFIG = """
daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
pid {directory}/nginx.pid;
error_log {directory}/error.log;
{user}
events {{ worker_connections {files}; }}
http {{
  access_log off;
  client_max_body_size 0;
  keepalive_requests 1000000000;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  upstream engine {{
    server 127.0.0.1:{engine};
    keepalive 64;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /health {{ return 200; }}
    location / {{
      proxy_pass http://engine;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


def version(root: Path) -> str:
    """nginx's own words."""
    said = subprocess.run([_binary(), "-v"], capture_output=True, text=True, check=True)
    return said.stderr.strip()


@contextmanager
def running(site: Site) -> Iterator[Running]:
    """nginx in front of the engine."""
    port = free_port()
    # The worker of a root nginx would be nobody, who may not write into the directory.
    user = "user root;" if os.geteuid() == 0 else ""
    config = site.directory / "nginx.conf"
    config.write_text(_CONFIG.format(
        directory=site.directory, user=user, port=port, engine=site.engine.port,
        files=4 * site.streams + 1024), encoding="utf-8")
    words = [_binary(), "-p", f"{site.directory}", "-e", "stderr", "-c", f"{config}"]
    with started(Command(words, port), site.directory / "log") as nginx:
        yield nginx


def _binary() -> str:
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if not found:
        raise StartError("nginx is missing: install it (Debian, Ubuntu: apt-get install nginx)")
    return found
