"""All subjects in turn, load by load, in rounds: what else the machine does hurts all alike."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tests.bench import launch, tree
from tests.bench.launch import Running, Site, StartError
from tests.bench.load import measure
from tests.bench.plan import Plan, Step
from tests.bench.subjects import Subject
from tests.bench.wire import LoadError

Measures = dict[str, float]


@dataclass
class Results:
    """By subject, the measures of each round (times in seconds, memory in bytes); failures."""

    measures: dict[str, list[Measures]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def faulty(self) -> bool:
        """Whether an event was lost or out of order, or an end was missing."""
        rounds = [each for found in self.measures.values() for each in found]
        return any(each.get("few faults") or each.get("many faults") for each in rounds)


class _Round:
    """One round: the subjects, which of them run, what is known of each by now."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.found: dict[str, Measures] = {subject.NAME: {} for subject in subjects}
        self.running: dict[str, Running] = {}
        self.failures: dict[str, str] = {}
        self._subjects = subjects

    def each(self, act: Callable[[Subject], Measures]) -> None:
        """Let every subject do something; one that fails is left out from then on."""
        for subject in self._subjects:
            if subject.NAME in self.failures:
                continue
            try:
                self.found[subject.NAME].update(act(subject))
            except (LoadError, StartError, OSError) as error:  # OSError: its processes are gone
                self.failures[subject.NAME] = f"{error}"

    def start(self, site: Site, stack: ExitStack, subject: Subject) -> Measures:
        """Start the subject in a directory of its own; it ends with the stack."""
        directory = site.directory / subject.NAME
        directory.mkdir()
        running = stack.enter_context(subject.running(replace(site, directory=directory)))
        self.running[subject.NAME] = running
        found = {} if running.start is None else {"start": running.start}
        return {**found, "memory idle": tree.memory_bytes(running.pid)}

    def take(self, step: Step, subject: Subject) -> Measures:
        """What one load on the subject measures."""
        if step.load == "streams" and not subject.STREAMS:
            return {}
        running = self.running[subject.NAME]
        found = measure(
            step.load, step.seconds, port=running.port, pid=running.pid, **step.options)
        return {ours: found[theirs] for theirs, ours in step.names.items()}


def run(
    plan: Plan, subjects: Sequence[Subject], root: Path, tell: Callable[[str], None]
) -> Results:
    """Measure the subjects; `tell` is told what is being done. Blocks for minutes.

    A subject that does not start, keep up or stay alive is among the failures, with the measures it
    has until then.
    """
    results = Results({subject.NAME: [] for subject in subjects})
    for number in range(plan.rounds):
        tell(f"round {number + 1} of {plan.rounds}")
        first = number % len(subjects)
        this = _Round([*subjects[first:], *subjects[:first]])
        _fill(this, plan, root)
        for name, found in this.found.items():
            results.measures[name].append(found)
        results.failures += [
            f"round {number + 1}, {name}: {text}" for name, text in this.failures.items()]
    return results


def _fill(this: _Round, plan: Plan, root: Path) -> None:
    """Start the engine and all subjects, put every load on each, and end them."""
    with ExitStack() as stack:
        engine = stack.enter_context(launch.engine())
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        site = Site(Path(directory), engine, root, plan.streams)
        this.each(partial(this.start, site, stack))
        for step in plan.steps():
            this.each(partial(this.take, step))
