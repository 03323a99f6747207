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

from tests.bench import machine, micro, plan, report, rounds
from tests.bench.launch import ROOT, StartError
from tests.bench.subjects import BASE, GATEWAY, PEERS, Subject

_DESCRIPTION = """\
Measures what the gateway costs a plain request and a streamed event, beside its peers, in front of
the same fake engine: one table of medians. Takes seven minutes, or one with --quick --peers none.
Peers are installed below .cache/bench when they are measured first."""


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/bench", description=_DESCRIPTION)
    known = ",".join(PEERS)
    parser.add_argument("--rounds", type=_count, help="7, or 2 if quick")
    parser.add_argument("--quick", action="store_true", help="less of everything, within a minute")
    parser.add_argument("--streams", type=_count, help="the many at once: 1000, or 150 if quick")
    parser.add_argument("--peers", type=_peers, default=[*PEERS.values()], metavar="NAMES",
                        help=f"separated by commas: {known}; or none")
    parser.add_argument("--micro", action="store_true", help="instead: single hot functions")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the gateway to be measured")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="every round's measures go there, in seconds and bytes")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 10000")
    return int(text)


def _peers(text: str) -> list[Subject]:
    names = [] if text == "none" else text.split(",")
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
    if options.micro:
        print(micro.table())
        return 0
    chosen, root = _plan(options), options.root.resolve()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    machine.open_files()
    facts = [machine.description()]
    subjects = [each for each in (BASE, *options.peers, GATEWAY) if _is_there(each, root, facts)]
    if GATEWAY not in subjects:
        sys.exit(f"bench: {facts[-1]}")
    facts.append(f"command: {shlex.join(['scripts/bench', *arguments])}")
    others = machine.Others()
    results = rounds.run(chosen, subjects, root, _tell)
    facts.append(f"other processes used {others.share():.0%} of the machine meanwhile")
    print(report.tables(results, chosen.streams), *results.failures, "", *facts, sep="\n")
    if options.json:
        kept = {"plan": dataclasses.asdict(chosen), **dataclasses.asdict(results), "facts": facts}
        options.json.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")
    return 1 if results.failures or results.faulty else 0


def _is_there(subject: Subject, root: Path, facts: list[str]) -> bool:
    """Whether the subject can be measured; says in `facts` what it is, or why it is left out."""
    try:
        facts.append(subject.version(root))
    except StartError as error:
        facts.append(f"{subject.NAME} is left out: {error}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
