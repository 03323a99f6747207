"""ANY /upstream/<model>/<path>: straight to a model's engine, nothing read and nothing changed."""

from collections.abc import Callable
from urllib.parse import unquote

from flask import Blueprint, Response, request

from app.api.body import read_opaque
from app.api.http import any_method, call_of, response_of, services
from app.api.paths import raw_target
from app.call import Passing
from app.errors import GatewayError, Kind

_PREFIX = "/upstream/"
_MAX_SEGMENTS = 8  # of a model's name


def blueprint() -> Blueprint:
    """The route."""
    bp = Blueprint("upstream", __name__)

    @any_method(bp, "/upstream/<path:rest>")
    def upstream(rest: str) -> Response:
        """Whatever is asked of one model's engine, and whatever it answers."""
        raw = raw_target(request.environ).removeprefix(_PREFIX)
        model, target = split(raw, services().gateway.knows)
        call = call_of(read_opaque(), model=model, target=target, passing=Passing.ANYTHING)
        return response_of(services().gateway.call(call))

    return bp


def split(raw: str, knows: Callable[[str], bool]) -> tuple[str, str]:
    """Model name and target of ``raw``, which is a name, a slash and a target.

    A name may hold slashes, so the longest beginning that names a known model counts; where none
    does, the name ends with the first segment that holds a tag, else with the first segment.
    Raises GatewayError where nothing is left for the target.
    """
    path, mark, query = raw.partition("?")
    segments = path.split("/")
    names = ["/".join(segments[:n]) for n in range(1, min(len(segments), _MAX_SEGMENTS + 1))]
    if not names or not names[0]:
        raise GatewayError(Kind.UNKNOWN_URL, f"there is no {_PREFIX}{path} here")
    known = (name for name in reversed(names) if knows(unquote(name)))
    tagged = (name for name in names if ":" in unquote(name).rpartition("/")[2])
    name = next(known, None) or next(tagged, None) or names[0]
    return unquote(name), path[len(name):] + mark + query
