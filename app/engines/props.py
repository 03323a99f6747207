"""GET /props: what a llama-server says of itself and of the model it has loaded.

Source of the fields: llama.cpp, tools/server/README.md. An engine without /props is one that
speaks the OpenAI API, and nothing more is known of it.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from app import jsontext
from app.call import Call, Passing
from app.engine_facts import LLAMA_SERVER, OPENAI, EngineFacts
from app.engines.client import EngineClient
from app.engines.failures import Limits
from app.engines.hangup import Departure
from app.errors import GatewayError

LIMITS = Limits(connect=1.0, read=5.0)  # s; for whoever asks an engine something small
QUICK = 0.2  # s: nobody waits longer to learn what is good to know

_FRESH = 10.0  # s; how long an answer counts
_RETRY = 1.0  # s; how long nobody asks again after no answer
_REMEMBERED = 4096  # models
_NOT_LOADED = 400  # of a llama-server that routes: it has the model, but not in memory

Ask = Callable[[str], tuple[int, bytes]]


def parse_props(status: int, body: bytes) -> EngineFacts | None:
    """What an answer to GET /props says; None for one that says nothing, such as 503 "loading".

    Any other answer than llama-server's is that of an engine that has no /props.
    """
    if status >= 500 or status in (401, 403, 408, 429):
        return None
    props = _object(body) if status == 200 else {}
    settings = props.get("default_generation_settings")
    if not isinstance(settings, dict):
        return OPENAI
    caps, senses = _part(props, "chat_template_caps"), _part(props, "modalities")
    tools = caps.get("supports_tools")
    return EngineFacts(
        kind=LLAMA_SERVER,
        slot_context=_count(settings.get("n_ctx")),
        slots=_count(props.get("total_slots")),
        chat_template=_text(props.get("chat_template")),
        supports_tools=tools if isinstance(tools, bool) else None,
        vision=senses.get("vision") is True,
        audio=senses.get("audio") is True,
        bos_token=_text(props.get("bos_token")),
        media_marker=_text(props.get("media_marker")),
        model_path=_text(props.get("model_path")),
        ftype=_text(props.get("model_ftype")),
        sleeping=props.get("is_sleeping") is True,
    )


def asking(client: EngineClient, limit: float | None = None) -> Ask:
    """A function that sends GET requests through ``client``, which should have ``LIMITS``.

    It blocks for as long as the client's limits allow, or ``limit`` (s), and raises GatewayError.
    """
    def ask(target: str) -> tuple[int, bytes]:
        call = Call(target, None, _NoBody(), "props", method="GET", passing=Passing.ANYTHING,
                    limit=limit)
        try:
            with closing(client.send(call, Departure(None))) as reply:
                return reply.status, reply.body
        finally:
            client.close()  # questions are rare: no connection is kept for the next one
    return ask


class PropsCache:
    """The facts of one engine, per model. Safe to use from many threads.

    One that is asked for facts that are ten seconds old asks the engine again, and meanwhile the
    others get the old ones; where an engine does not answer, the old ones go on to count.
    """

    def __init__(
        self, ask: Ask, kind: str | None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """``kind`` is the engine's as configured; None means that its /props decides."""
        self._ask = ask
        self._kind = kind
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def of(self, model: str) -> EngineFacts | None:
        """The facts about the engine as it runs the model; None where nothing is known.

        Blocks as ``ask`` does, raises nothing, and never makes an engine load a model.
        """
        if self._kind == OPENAI.kind:
            return OPENAI
        with self._lock:
            known = self._known.get(model)
            if known and self._monotonic() < known.until:
                return known.facts
            if known and known.facts:
                known.until = self._monotonic() + _FRESH  # one asks, the others need not wait
        found = self._asked(model)
        with self._lock:
            return self._remembered(model, found)

    def known(self, model: str) -> EngineFacts | None:
        """The facts as they were last seen; asks nobody."""
        if self._kind == OPENAI.kind:
            return OPENAI
        with self._lock:
            known = self._known.get(model)
            return known.facts if known else self._configured()

    def expire(self) -> None:
        """What is known may have changed: whoever wants to know asks the engine again."""
        with self._lock:
            for known in self._known.values():
                known.until = 0.0

    def _asked(self, model: str) -> EngineFacts | None:
        try:
            # A router answers per model; without autoload it would load it for the question.
            status, body = self._ask(f"/props?model={quote(model, safe='')}&autoload=false")
            if status == _NOT_LOADED:
                status, body = self._ask("/props")
        except GatewayError:
            return None
        found = parse_props(status, body)
        return self._configured() or OPENAI if found is OPENAI else found

    def _configured(self) -> EngineFacts | None:
        """What is known of an engine before it has said a word."""
        return EngineFacts(self._kind) if self._kind else None

    def _remembered(self, model: str, found: EngineFacts | None) -> EngineFacts | None:
        before = self._known.pop(model, None)
        facts = found or (before.facts if before else self._configured())
        wait = _FRESH if found else _RETRY
        self._known[model] = _Known(facts, self._monotonic() + wait)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return facts


@dataclass
class _Known:
    """Facts, and until when nobody has to ask again."""

    facts: EngineFacts | None
    until: float


class _NoBody:
    """The body of a GET."""

    raw = b""
    content_type = ""
    model = None
    opening = None

    def for_model(self, name: str) -> "_NoBody":
        """There is nothing in it that could name a model."""
        return self


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = jsontext.decode(body)
    except jsontext.JsonError:
        return {}
    return found if isinstance(found, dict) else {}


def _part(props: dict[str, Any], key: str) -> dict[str, Any]:
    found = props.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
