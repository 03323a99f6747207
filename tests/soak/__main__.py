"""The command line: see scripts/soak --help."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.server.checks import RESERVE
from tests.bench.launch import engine as fast_engine
from tests.fakes.engine_steps import reply
from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.engines.calling import chat, succeeds
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.worker_facts import WorkerFacts
from tests.soak.calls import Load
from tests.soak.failures import failures, good_call, start_threads
from tests.soak.managed import gateway_at, managed_failures

_DESCRIPTION = """\
Makes many calls of every kind, then many failures of every kind, and looks at what the gateway's
worker process holds: its memory must stay within 5 % of what it had after the first tenth of the
calls, its threads and descriptors must be as many as before each failure. Everything is on
loopback. Takes about ten minutes for 100000 calls on two cores that are free."""
THREADS, MANAGED_THREADS = 32, 64
_FLAT = 0.05  # of the memory
_WARM = 10  # a tenth of the calls comes first
_MIB = 1 << 20


@dataclass
class Memory:
    """The worker's resident memory over the calls: how many there had been, and bytes."""

    samples: list[tuple[int, int]] = field(default_factory=list)

    def since(self, calls: int) -> list[int]:
        """The samples after so many calls."""
        return [size for made, size in self.samples if made >= calls]

    def table(self) -> str:
        """A line for each tenth of the calls."""
        last = self.samples[-1][0]
        wanted = [last * tenth // 10 for tenth in range(11)]
        rows = [min(self.samples, key=lambda each: abs(each[0] - calls)) for calls in wanted]
        return "\n".join(f"{made:>9} calls {size / _MIB:8.1f} MiB" for made, size in rows)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/soak", description=_DESCRIPTION)
    parser.add_argument("--calls", type=int, default=100_000, metavar="N")
    parser.add_argument("--minutes", type=float, default=30.0, metavar="M",
                        help="end the calls then, however many there were")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run it and print what was seen; 1 where something has grown or an answer was wrong."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as name, fast_engine() as engine, \
            RawEngine(reply()) as faulty:
        directory = Path(name)
        home = RegistryHome(directory / "home")
        for model in ("m", "slow"):
            home.add(model)
        url = f"http://127.0.0.1:{engine.port}"
        problems = _calls(directory / "calls", home, url, options)
        problems += _failures(directory / "failures", home, faulty)
        problems += _managed_failures(directory / "managed")
    print("\n".join(problems) or "all is as it was")
    return 1 if problems else 0


def _gateway(directory: Path, home: RegistryHome, url: str) -> GatewayProcess:
    directory.mkdir()
    return GatewayProcess(directory, {"server": {"threads": THREADS}, "loop": {
        "home": str(home.path), "read-timeout": "5m",
        "engines": [{"url": url, "models": ["m"], "kind": "openai"}]}})


def _calls(directory: Path, home: RegistryHome, url: str, options: argparse.Namespace
           ) -> list[str]:
    with _gateway(directory, home, url) as gateway:
        facts, memory = WorkerFacts(gateway), Memory()
        start_threads(gateway, THREADS + RESERVE)
        Load(gateway.port, options.calls // _WARM, 60 * options.minutes).run(lambda _: None)
        threads, descriptors = facts.threads(), facts.descriptors()
        load = Load(gateway.port, options.calls, 60 * options.minutes)
        began = time.monotonic()
        made = load.run(lambda calls: memory.samples.append((calls, facts.resident())))
        seconds = time.monotonic() - began
        memory.samples.append((made, facts.resident()))
        print(f"{made} calls in {seconds:.0f} s after {options.calls // _WARM} to begin with: "
              + ", ".join(f"{count} {name}" for name, count in load.made.items()))
        print(memory.table())
        problems = [f"a wrong answer: {fault}" for fault in load.faults[:10]]
        return problems + _growth(memory) + _left(facts, threads, descriptors, "the calls")


def _growth(memory: Memory) -> list[str]:
    sizes = memory.since(0)
    least, most = min(sizes) / sizes[0] - 1, max(sizes) / sizes[0] - 1
    print(f"memory: {least:+.1%} to {most:+.1%} of {sizes[0] / _MIB:.1f} MiB")
    return [f"memory is not flat: {least:+.1%} to {most:+.1%}"] if max(-least, most) > _FLAT else []


def _failures(directory: Path, home: RegistryHome, engine: RawEngine) -> list[str]:
    problems = []
    with _gateway(directory, home, engine.url) as gateway:
        facts = WorkerFacts(gateway)
        start_threads(gateway, THREADS + RESERVE)
        good_call(gateway, engine)
        threads, descriptors = facts.threads(), facts.descriptors()
        before = facts.resident()
        for name in failures(gateway, engine):
            good_call(gateway, engine)
            problems += _left(facts, threads, descriptors, name)
        print(f"memory after all failures: {facts.resident() / before - 1:+.1%}")
    return problems


def _managed_failures(directory: Path) -> list[str]:
    problems = []
    with gateway_at(directory) as gateway:
        facts = WorkerFacts(gateway)
        start_threads(gateway, MANAGED_THREADS + RESERVE)
        succeeds(chat(gateway.url, "m"))
        threads, descriptors = facts.threads(), facts.descriptors()
        for name in managed_failures(gateway):
            problems += _left(facts, threads + 1, descriptors, name)  # and the supervisor
    return problems


def _left(facts: WorkerFacts, threads: int, descriptors: int, what: str) -> list[str]:
    try:
        wait_until(lambda: facts.threads() <= threads and facts.descriptors() <= descriptors,
                   what, 10)
    except AssertionError:
        return [f"after {what}: {facts.threads()} threads and {facts.descriptors()} descriptors "
                f"instead of {threads} and {descriptors}"]
    print(f"after {what}: {facts.threads()} threads, {facts.descriptors()} descriptors")
    return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
