"""Engines of one program and model are numbered as the configuration that counts lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.engines.command import Surroundings
from app.engines.fleet import Entry, Fleet, Owners
from app.engines.policy import PolicyInForce
from app.engines.router import Served
from app.engines.stock import Stock
from app.engines.supervisor import Supervisor
from app.settings import EngineSettings
from tests.fakes.registry_home import LLAMA, RegistryHome
from tests.unit.engines.supervised import POLICY

Configured = Callable[..., Fleet]


def settings(*command: str) -> EngineSettings:
    """What an engine of this command is made of."""
    return EngineSettings("", (), connect_timeout=1.0, read_timeout=1.0, command=command)


A, B, C = settings("/bin/e", "a"), settings("/bin/e", "b"), settings("/opt/e")
OTHER = settings("f")


@pytest.fixture
def configured(registry_home: RegistryHome) -> Iterator[Configured]:
    """A function that makes fleets of engines of one model, each following the one before."""
    registry_home.add_files("m", {"model.gguf": LLAMA})
    registry = Registry(registry_home.path)
    policy = PolicyInForce(POLICY)
    owners = Owners(Stock(policy, 1), Supervisor(policy))
    fleets: list[Fleet] = []

    def fleet(*made_of: EngineSettings) -> Fleet:
        found = Fleet([Entry(Served(("m",)), each) for each in made_of], owners,
                      Surroundings(registry, FactsCache(), registry_home.path, 1))
        found.claim()
        if fleets:
            found.succeed(fleets[-1])
        fleets.append(found)
        return found
    yield fleet
    owners.supervisor.close(hastily=True)


def addresses(fleet: Fleet) -> list[str]:
    """What the engines are called, in the order of the configuration."""
    return [engine.address for engine in fleet.engines("m")]


def test_they_are_numbered_in_their_order(configured: Configured) -> None:
    """Each program for itself, equal ones too."""
    assert addresses(configured(A, OTHER, B, A, OTHER)) == [
        "e m", "f m", "e m #2", "e m #3", "f m #2"]


@pytest.mark.parametrize("later", [[B], [B, A], [C, A, B], [A, A, B], [B, C, OTHER]])
def test_numbers_are_those_of_a_gateway_that_starts_anew(
        configured: Configured, later: Sequence[EngineSettings]) -> None:
    """Whatever was configured before, so that both prefer the same engine for a conversation."""
    assert addresses(configured(A, B, C)) == ["e m", "e m #2", "e m #3"]
    reloaded = configured(*later)
    count = sum(each is not OTHER for each in later)
    fresh = ["e m", "e m #2", "e m #3"][:count] + ["f m"] * (len(later) - count)
    assert addresses(reloaded) == fresh
    assert not {each.address for each in reloaded.leaving()[1]} & set(fresh)
    assert addresses(configured(C, B, A)) == ["e m", "e m #2", "e m #3"]
