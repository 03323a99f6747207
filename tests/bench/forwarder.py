"""The least that a proxy of Flask, marshmallow and a requests Session does: a WSGI application.

It forwards chats whole to the server in ENGINE: no streams, keys, queue, log or metrics.
"""

from __future__ import annotations

import json
import os

import flask
import marshmallow
import requests

application = flask.Flask("forwarder")
_session = requests.Session()
_session.trust_env = False
_view = marshmallow.Schema.from_dict({
    "model": marshmallow.fields.String(required=True),
    "messages": marshmallow.fields.List(marshmallow.fields.Raw(), required=True),
})(unknown=marshmallow.EXCLUDE)


@application.get("/health")
def _health() -> str:
    return "ok"


@application.post("/v1/chat/completions")
def _chat() -> flask.Response:
    raw = flask.request.get_data()
    _view.load(json.loads(raw))
    request = requests.PreparedRequest()
    request.method, request.body = "POST", raw
    request.url = os.environ["ENGINE"] + "/v1/chat/completions"
    request.headers = requests.structures.CaseInsensitiveDict({
        "Content-Type": "application/json", "Content-Length": str(len(raw))})
    request.hooks = requests.hooks.default_hooks()
    answer = _session.get_adapter(request.url).send(request, stream=True, timeout=(2, 120))
    return flask.Response(answer.content, answer.status_code, content_type="application/json")
