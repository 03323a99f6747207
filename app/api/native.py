"""llama-server's own endpoints and its unversioned spellings, at the addresses it has them.

They are the engine's API, not the gateway's: statuses and errors of the engine pass as they are.
"""

from flask import Blueprint, Response, request

from app.api.body import read_any, read_opaque
from app.api.http import call_of, response_of, services
from app.api.payload import OpaqueBody
from app.api.view import AnyView
from app.call import Passing
from app.errors import GatewayError, Kind

OF_ITSELF = ("/props", "/slots", "/slots/<number>", "/lora-adapters")
TOLD = (
    "/completion", "/infill", "/tokenize", "/detokenize", "/apply-template",
    "/embedding", "/embeddings", "/rerank", "/reranking",
    "/completions", "/chat/completions", "/responses", "/audio/transcriptions",
)


def blueprint() -> Blueprint:
    """The routes; the model is the one in the body, or in the query, or the default."""
    bp = Blueprint("native", __name__)
    view = AnyView()

    def tell() -> Response:
        """Have the engine do something."""
        body = read_any(view)
        call = call_of(body, passing=Passing.STATUSES, **body.facts)
        return response_of(services().gateway.call(call), parts=body.parts)

    for path in TOLD:
        bp.add_url_rule(path, f"tell {path}", tell, methods=["POST"])
    for path in OF_ITSELF:
        bp.add_url_rule(path, f"of itself {path}", ask_engine, methods=["GET", "POST"])
    return bp


def ask_engine(number: str = "") -> Response:
    """Ask an engine about itself, or have it change itself."""
    models = request.args.getlist("model")
    if len(models) > 1:  # the engine might read another one than was checked here
        text = "'model' stands in the query more than once"
        raise GatewayError(Kind.INVALID_FIELD, text, param="model")
    body = read_opaque() if request.method == "POST" else OpaqueBody()
    call = call_of(body, model=next(iter(models), None), passing=Passing.STATUSES)
    return response_of(services().gateway.call(call))
