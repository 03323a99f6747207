"""A request to /v1/inference: read, checked, and turned into the call of a chat."""

import time
from dataclasses import dataclass

from marshmallow import Schema

from app.api.body import read_json
from app.api.http import call_of, services
from app.api.juno.request import chat_body, priority
from app.api.payload import JsonBody
from app.api.request_id import request_id
from app.api.security import permit
from app.call import Call


@dataclass(frozen=True)
class Ask:
    """The call, and what the answer repeats; ``started`` is a reading of the monotonic clock."""

    call: Call
    request_id: str
    model: str
    started: float

    @property
    def milliseconds(self) -> int:
        """How long it has taken until now."""
        return round((time.monotonic() - self.started) * 1000)


def read(view: Schema, stream: bool) -> Ask:
    """What the current request asks. Blocks and raises as ``read_json``; takes a place."""
    body = read_json(view)
    fields, beside = body.fields, body.extensions
    gateway = services().gateway
    model = permit(fields.get("modelId"), gateway) or gateway.resolve(None)
    chat = {"model": model, **chat_body(fields, beside), "stream": stream}
    call = call_of(
        JsonBody(None, chat), target="/v1/chat/completions", accept="*/*",
        priority=priority(fields, beside), session=beside.session,
    )
    return Ask(call, fields.get("requestId") or request_id(), model, time.monotonic())
