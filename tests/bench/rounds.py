"""All subjects in turn, load by load, in rounds: what else the machine does hurts all alike."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tests.bench import catalogue, launch, tree
from tests.bench.launch import Running, Site, StartError
from tests.bench.load import measure
from tests.bench.plan import MODELS, Plan, Step
from tests.bench.subjects import GATEWAY, Subject
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
        return any(value for each in rounds for key, value in each.items() if "faults" in key)


class _Round:
    """One round: the subjects, which of them run, what is known of each by now."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.found: dict[str, Measures] = {subject.NAME: {} for subject in subjects}
        self.running: dict[str, Running] = {}
        self.failures: dict[str, str] = {}
        self._subjects = subjects
        self._ends: dict[str, ExitStack] = {}

    def each(self, act: Callable[[Subject], Measures]) -> None:
        """Let every subject do something; one that fails is left out from then on."""
        for subject in self._subjects:
            if subject.NAME in self.failures:
                continue
            try:
                self.found[subject.NAME].update(act(subject))
            except (LoadError, StartError, OSError) as error:  # OSError: its processes are gone
                self.failures[subject.NAME] = f"{error}"
                self._ends.pop(subject.NAME, ExitStack()).close()

    def start(self, site: Site, stack: ExitStack, subject: Subject) -> Measures:
        """Start the subject in a directory of its own; it ends with the stack, or by failing."""
        directory = site.directory / subject.NAME
        directory.mkdir()
        stack = self._ends[subject.NAME] = stack.enter_context(ExitStack())
        running = stack.enter_context(subject.running(replace(site, directory=directory)))
        self.running[subject.NAME] = running
        found = {} if running.start is None else {"start": running.start}
        return {**found, "memory idle": tree.memory_bytes(running.pid)}

    def take(self, step: Step, subject: Subject) -> Measures:
        """What one load on the subject measures."""
        if not _takes(subject, step):
            return {}
        found = measure(step.load, self.running[subject.NAME], step.seconds, **step.options)
        return {ours: found[theirs] for theirs, ours in step.names.items()}


def run(
    plan: Plan, subjects: Sequence[Subject], root: Path, tell: Callable[[str], None]
) -> Results:
    """Measure the subjects; `tell` is told what is being done. Blocks for minutes.

    A subject that does not start, keep up or stay alive is among the failures, with the measures it
    has until then.
    """
    results = Results({subject.NAME: [] for subject in subjects})
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        catalogue.fill(Path(home), MODELS)
        for number in range(plan.rounds):
            tell(f"round {number + 1} of {plan.rounds}")
            first = number % len(subjects)
            this = _Round([*subjects[first:], *subjects[:first]])
            _fill(this, plan, root, Path(home))
            for name, found in this.found.items():
                results.measures[name].append(found)
            results.failures += [
                f"round {number + 1}, {name}: {text}" for name, text in this.failures.items()]
    return results


def _fill(this: _Round, plan: Plan, root: Path, home: Path) -> None:
    """Start the engine and all subjects, put every load on each, and end them."""
    with ExitStack() as stack:
        engine = stack.enter_context(launch.engine())
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        site = Site(Path(directory), engine, root, plan.streams)
        this.each(partial(this.start, site, stack))
        for step in plan.steps():
            this.each(partial(this.take, step))
        this.each(partial(_lists, replace(site, directory=home), plan.lists))


def _takes(subject: Subject, step: Step) -> bool:
    """Whether the subject can do what the step asks for."""
    able = {"streams": step.options.get("count", 0) <= subject.MOST_STREAMS,
            "picture": subject.PICTURES}.get(step.load, True)
    return able and (step.of_all or subject is GATEWAY)


def _lists(site: Site, seconds: float, subject: Subject) -> Measures:
    """What the lists of a second gateway cost, which has many models."""
    if subject is not GATEWAY:
        return {}
    with subject.running(site) as running:
        return measure("catalogue", running, seconds)
