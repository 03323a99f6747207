"""The load, in a process of its own: python -m tests.bench.load KIND OPTIONS, both as JSON.

Prints what it measured as one JSON object, or {"failure": "a sentence"}. KIND names a
module; the options are the arguments of its `run`.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.bench import catalogue, picture, plain, streams
from tests.bench.launch import ROOT, Running
from tests.bench.wire import LoadError, Target

_KINDS: dict[str, Callable[..., Any]] = {
    "catalogue": catalogue.run, "picture": picture.run, "plain": plain.run, "streams": streams.run,
}
_LIMIT = 120  # seconds, beside the time that was asked for


def measure(kind: str, on: Running, seconds: float, **options: Any) -> dict[str, float]:
    """What a load of `seconds` on another process measured.

    Blocks until it is over. Raises LoadError where the load could not do what it was asked for.
    """
    target = {"port": on.port, "pid": on.pid, "headers": on.headers,
              "opening": on.opening}
    text = json.dumps({"target": target, "seconds": seconds, **options})
    command = [sys.executable, "-m", "tests.bench.load", kind, text]
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, timeout=seconds + _LIMIT, check=True,
            start_new_session=True)
    except subprocess.SubprocessError as error:
        raise LoadError(f"the load failed: {error}") from error
    found: dict[str, Any] = json.loads(done.stdout)
    if "failure" in found:
        raise LoadError(found["failure"])
    return found


def main(kind: str, text: str) -> None:
    """Run one load and print what it measured."""
    options = json.loads(text)
    target = Target(**options.pop("target"))
    gc.disable()  # a pause would look like a slow gateway
    try:
        found = dataclasses.asdict(_KINDS[kind](target, **options))
    except (LoadError, OSError) as error:
        found = {"failure": f"{error}"}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
