"""The command line: see scripts/bench --help."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tests.bench import machine, plan, report, rounds
from tests.bench.launch import ROOT, StartError
from tests.bench.subjects import BASE, PEERS, Subject

_DESCRIPTION = """\
Measures what the gateway costs a plain request and a streamed event, beside its peers, in front of
the same fake engine: one table of medians. Takes seven minutes, or one with --quick."""


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/bench", description=_DESCRIPTION)
    known = ",".join(PEERS)
    parser.add_argument("--rounds", type=_count, help="7, or 2 if quick")
    parser.add_argument("--quick", action="store_true", help="less of everything, within a minute")
    parser.add_argument("--streams", type=_count, help="the many at once: 1000, or 150 if quick")
    parser.add_argument("--subjects", type=_subjects, default=[*PEERS.values()], metavar="NAMES",
                        help=f"beside direct, separated by commas: {known}")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the gateway to be measured")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="every round's measures go there, in seconds and bytes")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 10000")
    return int(text)


def _subjects(text: str) -> list[Subject]:
    names = text.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PEERS)}")
    return [PEERS[name] for name in dict.fromkeys(names)]


def _plan(options: argparse.Namespace) -> plan.Plan:
    preset = plan.QUICK if options.quick else plan.FULL
    asked = {"rounds": options.rounds, "streams": options.streams}
    return dataclasses.replace(preset, **{name: n for name, n in asked.items() if n is not None})


def _stop(*_: object) -> NoReturn:
    """Leave all contexts, so that what was started ends."""
    sys.exit("stopped")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments ask for; 1 where a subject failed or lost an event."""
    options = _options(arguments)
    chosen, root = _plan(options), options.root.resolve()
    subjects = [BASE, *options.subjects]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    machine.open_files()
    command = f"command: {shlex.join(['scripts/bench', *arguments])}"
    try:
        facts = [machine.description(), *(subject.version(root) for subject in subjects), command]
    except StartError as error:
        sys.exit(f"bench: {error}")
    others = machine.Others()
    results = rounds.run(chosen, subjects, root, _tell)
    facts.append(f"other processes used {others.share():.0%} of the machine meanwhile")
    print(report.tables(results, chosen.streams), *results.failures, "", *facts, sep="\n")
    if options.json:
        kept = {"plan": dataclasses.asdict(chosen), **dataclasses.asdict(results), "facts": facts}
        options.json.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")
    return 1 if results.failures or results.faulty else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
