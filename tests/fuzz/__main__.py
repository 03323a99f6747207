"""The command line: see scripts/fuzz-http --help."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.gateway import fuzzed
from tests.fuzz.judging import try_all

_DESCRIPTION = """\
Says to a gateway on loopback whatever chance makes of requests, and of bytes that are none. Fails
where an answer is a 500, no JSON or no HTTP, where there is neither an answer nor an end within ten
seconds, and where the gateway's log has a stack trace. Takes a minute for 5000 connections."""


def main(arguments: Sequence[str]) -> int:
    """Run it and print what was seen; 1 where something was found.

    Raises AssertionError with the gateway's log where that has a stack trace.
    """
    parser = argparse.ArgumentParser("scripts/fuzz-http", description=_DESCRIPTION)
    parser.add_argument("--connections", type=int, default=5000, metavar="N")
    parser.add_argument("--seed", type=int, default=int(time.time()), metavar="S",
                        help="the same seed makes the same requests")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name, fuzzed(Path(name)) as gateway:
        began = time.monotonic()
        verdicts = try_all(gateway.url, options.connections, options.seed)
        print(f"seed {options.seed}: {options.connections} connections in "
              f"{time.monotonic() - began:.0f} s; by status (0: closed without an answer): "
              + ", ".join(f"{count} × {status}" for status, count in
                          sorted(verdicts.statuses.items())))
        print("\n".join(verdicts.faults) or "nothing was found")
    return 1 if verdicts.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
