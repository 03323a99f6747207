"""GET /metrics: what the gateway has counted, and what its engines say of themselves."""

from flask import Blueprint, Response, request

from app.api.native import ask_engine
from app.api.security import principal
from app.telemetry.exposition import CONTENT_TYPE, MetricsPage


def blueprint(page: MetricsPage) -> Blueprint:
    """The route; with ``?model=NAME``, or to be told something, it is that of an engine."""
    bp = Blueprint("metrics", __name__)

    @bp.route("/metrics", methods=["GET", "POST"])
    def metrics() -> Response:
        """Metrics in Prometheus' text format, of the models that the caller may use."""
        if "model" in request.args or request.method == "POST":
            return ask_engine()
        who = principal()
        made = page.made(None if who.every_model else who.allows)
        return Response(made, content_type=CONTENT_TYPE)

    return bp
