"""LiteLLM's proxy with one worker, as its own command starts it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml

from tests.bench import environments
from tests.bench.exchange import MODEL
from tests.bench.launch import Command, Running, Site, free_port
from tests.bench.launch import running as started

NAME = "litellm"
MOST_STREAMS = 100  # the events of more at the same pace are more than one worker can pass on
PICTURES = True

_PACKAGE = "litellm[proxy]"
_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR",
                "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
_VERSION = "from importlib.metadata import version; print(version('litellm'))"


def version(root: Path) -> str:
    """The version of the proxy, which is installed where it is not yet. Raises StartError."""
    python = environments.of_python(NAME, _PACKAGE) / "bin" / "python"
    said = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=True)
    return f"litellm {said.stdout.strip()}, one worker"


@contextmanager
def running(site: Site) -> Iterator[Running]:
    """The proxy in front of the engine."""
    port = free_port()
    config = site.directory / "config.yaml"
    engine = {"model": f"openai/{MODEL}", "api_key": "none",
              "api_base": f"http://127.0.0.1:{site.engine.port}/v1"}
    config.write_text(yaml.safe_dump({
        "model_list": [{"model_name": MODEL, "litellm_params": engine}],
        "litellm_settings": {"telemetry": False, "num_retries": 0},
    }), encoding="utf-8")
    binary = environments.of_python(NAME, _PACKAGE) / "bin" / "litellm"
    words = [f"{binary}", "--config", f"{config}", "--host", "127.0.0.1", "--port", f"{port}",
             "--num_workers", "1", "--telemetry", "False"]
    command = Command(words, port, site.directory, _ENVIRONMENT, "/health/liveliness")
    with started(command, site.directory / "log") as proxy:
        yield replace(proxy, opening=0.2)
