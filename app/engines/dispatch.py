"""Brings a call to one of the engines that can serve it: choice, admission, sending, failover."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from app.call import Call, Passing, Reply
from app.engines.admission import Full
from app.engines.client import EngineClient
from app.engines.engine import Engine, candidate, note
from app.engines.hangup import Departure
from app.engines.loading import says_loading
from app.engines.router import best
from app.engines.usage import counted
from app.errors import GatewayError, Kind

# What an engine cannot have seen: the call may go to another one.
_UNSEEN = (Kind.ENGINE_UNAVAILABLE, Kind.ENGINE_NOT_READY)
_TRIES = 3  # at an engine that says by turns that it is ready and that it is loading


class _StillLoading(GatewayError):
    """The engine refused the call because it loads its model."""


def dispatch(engines: list[Engine], call: Call, departure: Departure) -> Reply:
    """The answer of one of the engines; whoever gets it closes it, which gives the slot back.

    An answer that is complete has given it back.

    Blocks as the queue and ``EngineClient.send`` do. Raises GatewayError. A call that has reached
    an engine is not sent to another, except where the engine said that it is loading.
    """
    rest, loading, revived, full = list(engines), list[Engine](), set[str](), list[Full]()
    while rest:
        engine = _chosen(rest, call)
        rest.remove(engine)
        try:
            return _through(engine, call, departure, patient=not rest and not loading)
        except _StillLoading:
            loading.append(engine)
        except GatewayError as error:
            if error.kind is Kind.ENGINE_UNAVAILABLE and _may_revive(engine, revived):
                rest.append(engine)
            elif not (isinstance(error, Full) or error.kind in _UNSEEN):
                raise
            elif not (rest or loading):
                raise full[0] if full else error  # one that is full can be come back to
            elif isinstance(error, Full):
                full.append(error)
    return _through(loading[0], call, departure, patient=True)


def _chosen(engines: list[Engine], call: Call) -> Engine:
    if len(engines) == 1:
        return engines[0]
    conversation = call.session or call.body.opening
    return engines[best([candidate(engine) for engine in engines], conversation)]


def _may_revive(engine: Engine, revived: set[str]) -> bool:
    """Whether to start an engine of ours again that has just died; once per call."""
    again = engine.managed and engine.address not in revived
    revived.add(engine.address)
    return again


def _through(engine: Engine, call: Call, departure: Departure, patient: bool) -> Reply:
    call.record.engine = engine.address
    engine.require()
    with ExitStack() as held:
        held.enter_context(engine.admission.entered(call, departure))
        if call.takes_slot and engine.health.suspect:
            engine.health.begin_trial()
        client = engine.client
        reply = _sent(engine, client, call, departure)
        if call.passing is not Passing.ANYTHING and says_loading(reply):
            if not patient:
                reply.close()
                raise _StillLoading(Kind.ENGINE_NOT_READY, "the engine is loading its model")
            reply = _when_loaded(engine, client, call, departure, reply)
        if call.takes_slot and reply.successful:
            engine.loading.over()
            reply = counted(reply, call.record)
        if reply.complete:
            return reply
        held.callback(reply.close)
        return replace(reply, close=held.pop_all().close)


def _sent(engine: Engine, client: EngineClient, call: Call, departure: Departure) -> Reply:
    began = time.monotonic()
    engine.health.expect()
    try:
        reply = client.send(call, departure, engine.health.hear)
    except GatewayError as error:
        note(engine, client, error)
        raise
    finally:
        engine.health.expect_no_more()
        call.record.answering += time.monotonic() - began
    ended = partial(_answered, engine, call)
    if reply.complete:
        ended()
        return reply
    finish = partial(_finished, reply, ended)
    return replace(reply, pieces=_watched(engine, client, reply, ended), finish=finish)


def _answered(engine: Engine, call: Call) -> None:
    """The answer is there as a whole. That to a small question says as little as that to a probe:
    who hangs at work may still give it.
    """
    if call.takes_slot:
        engine.answered()
    else:
        engine.health.probed()


def _watched(
    engine: Engine, client: EngineClient, reply: Reply, ended: Callable[[], None]
) -> Iterator[bytes]:
    """The pieces as they come; how they end is news about the engine's health."""
    health, pieces = engine.health, iter(reply.pieces)
    while True:
        health.expect()
        try:
            piece = next(pieces, None)
        except GatewayError as error:
            note(engine, client, error)
            raise
        finally:
            health.expect_no_more()
        if piece is None:
            break
        yield piece
    ended()


def _finished(reply: Reply, ended: Callable[[], None]) -> None:
    """The stream has said that it is over: the rest of it is of no interest."""
    reply.finish()
    ended()


def _when_loaded(
    engine: Engine, client: EngineClient, call: Call, departure: Departure, reply: Reply
) -> Reply:
    """The answer once the engine has loaded its model: it refused the call, so it is sent again.

    What it says then is passed on where its /health has not said that it was loading.
    """
    began = time.monotonic()
    until = engine.loading.deadline()
    try:
        for _ in range(_TRIES):
            if not says_loading(reply) or not engine.loading.wait(departure, until):
                break
            reply.close()
            reply = client.send(call, departure)
    finally:
        call.record.load += time.monotonic() - began
    return reply
