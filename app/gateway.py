"""The road of a call, from a model name to an engine's reply."""

import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace

from app.call import Call, Passing, Reply
from app.engine_facts import EngineFacts
from app.engines.admission import Retired
from app.engines.dispatch import dispatch
from app.engines.engine import Engine, excess
from app.engines.hangup import Departure, Hangups
from app.engines.own_metrics import OwnMetrics
from app.engines.runs import Runs
from app.engines.status import Status
from app.engines.unit import Unit
from app.errors import GatewayError, Kind
from app.places import Places, stopping
from app.routes import Lasting, Routes

_LOADED = "loaded"  # default-model: the one used last
_TRANSFERS = 4  # of the threads beside those for calls
_SPELLING = 1.0  # s; for which a model that has come into the registry may be unknown to be there
_LOOK = 0.05  # s between two looks at whether the last call of a model has ended


class Gateway:
    """The one door from HTTP to engines. Safe to use from many threads."""

    def __init__(self, routes: Routes, lasting: Lasting, places: int) -> None:
        """At most ``places`` calls are meant to run at a time; callers take one for each."""
        self._routes = routes
        self._supervisor = lasting.supervisor
        self._used = lasting.used
        self._policy = lasting.policy
        self._registry = lasting.registry
        self.own_metrics = OwnMetrics(lambda: self._routes.fleet, lasting.used)
        self.places = Places(places)
        self.transfers = Places(_TRANSFERS)
        self.runs = Runs()
        self._hangups = Hangups()

    def start(self) -> None:
        """Start the engines that are to be there from the beginning, and probe all from now on."""
        self._routes.fleet.start()
        self._routes.prober.start()

    def adopt(self, routes: Routes) -> None:
        """Let new calls go by ``routes``; to be called by one thread at a time.

        Engines that they have no more serve the calls that they have; who waits for one goes by
        the new routes. Engines that they still have notice nothing.
        """
        routes.fleet.claim()
        before, self._routes = self._routes, routes
        self._policy.replace(routes.policy)
        routes.fleet.succeed(before.fleet)
        before.prober.close()
        routes.prober.start()

    @property
    def status(self) -> Status:
        """What is loaded, and what every engine is doing."""
        return self._routes.status

    def take_no_more(self) -> None:
        """Refuse every call that comes from now on."""
        self.places.close()
        self.transfers.close()

    def end_calls(self) -> None:
        """Let every call end by an error now, wherever it is; returns at once."""
        self._hangups.end_all(stopping())

    def close(self, hastily: bool = False) -> None:
        """End every managed engine, and the calls that wait for one; blocks until all are gone.

        Engines get their time to stop, but not if it is to be done ``hastily``.
        """
        self._routes.prober.close()
        self._supervisor.close(hastily)

    def call(self, call: Call) -> Reply:
        """Send the call to an engine that serves its model and return the answer.

        Blocks until a managed engine is started, a slot is free and the engine answers. Raises
        GatewayError: the model is unknown, or every engine that serves it failed.
        Whoever gets the reply closes it. What the call holds comes back then, exactly once, or has
        come back where the reply is complete: a client with its last byte finds it free.
        """
        while True:
            try:
                return self._sent(call)
            except Retired:  # the configuration has changed while the call waited
                continue

    def _sent(self, call: Call) -> Reply:
        model, call.record.known = self._meant(call.model)
        call.record.model = model
        engines = self._engines(model, call)
        with ExitStack() as held:
            held.enter_context(self.runs.of(model, call.record))
            departure = held.enter_context(self._hangups.watch(call.client))
            reply = dispatch(engines, call.for_model(model), departure)
            held.callback(reply.close)
            if reply.successful:
                self._used.touch(model)
            if reply.complete:
                return reply
            if reply.successful:
                held.callback(self._used.touch, model)  # what was loaded is so until the end
            return replace(reply, close=held.pop_all().close)

    def _meant(self, name: str | None) -> tuple[str, bool]:
        """What ``resolve`` gives, and whether registry or configuration have such a model."""
        routes = self._routes
        target = routes.names.unaliased(name or self._default_model(routes))
        # Of a configured name only the spelling depends on the registry, which may be large.
        settled = target in routes.fleet.literal_names
        entry = self._registry.find(target, _SPELLING if settled else 0)
        if entry:
            return entry.name, True
        model = routes.fleet.configured_name(target)
        return model, model in routes.fleet.literal_names

    def _engines(self, model: str, call: Call) -> list[Engine]:
        """The engines that can serve the call; raises GatewayError where there are none."""
        serving = self._routes.fleet.engines(model)
        if not serving:
            raise GatewayError.unknown_model(call.model or model)
        able = [engine for engine in serving if excess(call, engine.max_choices) is None]
        if not able:
            most = max(engine.max_choices or 1 for engine in serving)
            field, bounds = excess(call, most), "1" if most == 1 else f"from 1 to {most}"
            text = f"'{field}' must be {bounds} for this model"
            raise GatewayError(Kind.INVALID_FIELD, text, param=field)
        return able

    def resolve(self, name: str | None) -> str:
        """The registry's spelling of a name: aliases, case and a missing tag are settled here.

        Without a name it is the default model; raises GatewayError where there is none.
        """
        return self._meant(name)[0]

    def unaliased(self, name: str) -> str:
        """The name an alias stands for; any other name as it is."""
        return self._routes.names.unaliased(name)

    def knows(self, name: str) -> bool:
        """Whether a name stands in the registry or, letter by letter, in the configuration."""
        routes = self._routes
        target = routes.names.unaliased(name)
        return target in routes.fleet.literal_names or self._registry.find(target) is not None

    def served(self, name: str) -> str:
        """As ``resolve``; raises GatewayError where no engine serves the model."""
        model = self.resolve(name)
        if not self._routes.fleet.serves(model):
            raise GatewayError.unknown_model(name)
        return model

    def prepare(self, call: Call) -> None:
        """Return once an engine of the call's model is loaded and answers.

        Blocks and raises as ``call`` does, but takes no slot.
        """
        question = replace(call, target="/health", method="GET", passing=Passing.STATUSES)
        self.call(question).close()

    def watch(self, client: socket.socket | None) -> AbstractContextManager[Departure]:
        """A Departure that happens if the client leaves before the context ends."""
        return self._hangups.watch(client)

    @contextmanager
    def retired(self, model: str, client: socket.socket | None) -> Iterator[None]:
        """Within it no call of the model runs or begins, and no managed engine of it has a process.

        Blocks until its calls have ended, which are served as if nothing was, and its engines after
        them; new ones do not find it meanwhile. Raises GatewayError where the request has to end.
        """
        with self.runs.none_of(model), self._hangups.watch(client) as departure:
            while not (self.runs.over(model) and self._without_process(model)):
                departure.check()
                time.sleep(_LOOK)
            self._used.touch(model, 0)
            yield

    def _without_process(self, model: str) -> bool:
        units = [unit for unit in self._routes.fleet.engines(model) if isinstance(unit, Unit)]
        units += [unit for unit in self._supervisor.leaving() if unit.model == model]
        return all([self._supervisor.end(unit) for unit in units])

    def is_loaded(self, model: str) -> bool:
        """Whether an engine serves the model without having to be started first."""
        return any(engine.loaded for engine in self._routes.fleet.engines(model))

    def engine_facts(self, model: str, ask: bool = True) -> EngineFacts | None:
        """What the engine says that serves a model of the registry; None where that is not known.

        Blocks for a third of a second at most, without ``ask`` not at all. Loads no model.
        """
        for engine in self._routes.fleet.engines(model):
            props = engine.props
            found = props.of(model) if ask and engine.loaded else props.known(model)
            if found is not None:
                if found.slots and engine.learns_slots:
                    engine.admission.slots = found.slots
                return found
        return None

    def memory(self) -> tuple[int | None, int]:
        """Bytes that managed engines may take together (None: no bound), and that they take."""
        return self._supervisor.budget, self._supervisor.memory_used()

    def keep(self, model: str, seconds: float | None, began: float) -> None:
        """Let the model stay loaded for so long after its last call, None: for the usual time.

        0 is until its running calls have ended, inf for ever. ``began`` is when the request did
        that says so: where ``unload`` came after it, managed engines end all the same.
        """
        if seconds is None:
            self._used.forget_keep_alive(model)
        else:
            self._used.touch(model, seconds)
        for engine in self._routes.fleet.engines(model):
            if isinstance(engine, Unit):
                self._supervisor.keep(engine, seconds, began)

    def unload(self, model: str) -> None:
        """Let the model be loaded no more once its running calls have ended, pinned or not."""
        self._used.touch(model, 0)
        for engine in self._routes.fleet.engines(model):
            if isinstance(engine, Unit):
                self._supervisor.release(engine)

    @staticmethod
    def _default_model(routes: Routes) -> str:
        default = routes.names.default
        found = routes.status.latest() if default == _LOADED else default
        if found:
            return found
        if default == _LOADED:
            raise GatewayError(Kind.NO_MODEL_LOADED, "no model is currently loaded")
        raise GatewayError(Kind.INVALID_FIELD, "'model' must not be blank", param="model")
