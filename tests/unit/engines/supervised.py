"""A supervisor whose engines have no processes, and calls for them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

from app.api.payload import OpaqueBody
from app.call import Call
from app.engines.admission import QueueRules
from app.engines.dispatch import dispatch
from app.engines.hangup import Departure
from app.engines.making import UnitKey
from app.engines.policy import Policy, PolicyInForce
from app.engines.supervisor import Supervisor
from app.engines.unit import Unit
from app.engines.unit_facts import State
from app.errors import GatewayError
from app.settings import EngineSettings
from tests.fakes.held_engine import HeldCommand, settles
from tests.fakes.raw_engine import RawEngine

POLICY = Policy(QueueRules(size=64, max_wait=8.0), 300.0, memory_budget=2, min_residency=0.0)
MADE_OF = EngineSettings("", (), command=("e",))


class Bench:
    """A supervisor, and calls in threads of their own."""

    def __init__(self, engine: RawEngine) -> None:
        self.engine = engine
        self.policy = PolicyInForce(POLICY)
        self.supervisor = Supervisor(self.policy)
        self.commands: dict[str, HeldCommand] = {}
        self._pool = ThreadPoolExecutor(32)

    def command(self, model: str, **settings: object) -> HeldCommand:
        """The command for a model; its processes are ready only when told to."""
        self.commands[model] = HeldCommand("e", self.engine, **settings)  # type: ignore
        return self.commands[model]

    def unit(self, model: str) -> Unit:
        """The unit of a model that has a command."""
        return self.supervisor.unit(UnitKey(MADE_OF, 0, model), self.commands[model])

    def call(self, model: str, departure: Departure | None = None) -> Future[int]:
        """The status of a call, sent in a thread of its own; the reply is closed."""
        return self._pool.submit(self._sent, model, departure or Departure(None))

    def _sent(self, model: str, departure: Departure) -> int:
        answer = dispatch([self.unit(model)], _work(model), departure)
        answer.close()
        return answer.status

    def running(self, model: str) -> AbstractContextManager[None]:
        """A call that runs as long as the context lasts."""
        return self.unit(model).admission.entered(_work(model), Departure(None))

    def replace_policy(self, **changed: object) -> None:
        """Let another policy count."""
        self.policy.replace(replace(POLICY, **changed))  # type: ignore[arg-type]

    def state(self, model: str, state: State) -> bool:
        """Whether a unit gets into that state."""
        return settles(lambda: self.unit(model).life.state is state)

    def close(self) -> None:
        """End everything."""
        for command in self.commands.values():
            for process in command.started:
                process.may_stop.set()
        self.supervisor.close(hastily=False)
        self._pool.shutdown()


def error_of(call: Future[int]) -> GatewayError:
    """The error in which a call ends."""
    error = call.exception(10)
    assert isinstance(error, GatewayError)
    return error


def _work(model: str) -> Call:
    return Call("/v1/x", model, OpaqueBody(b"{}", "application/json"), "id")
