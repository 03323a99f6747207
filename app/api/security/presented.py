"""The key that a request carries: in a header, never in its URL."""

from typing import Any

from app.errors import GatewayError, Kind

_NONE = "this gateway wants an API key: send it as 'Authorization: Bearer KEY'"
_SEVERAL = "the request carries several different API keys; send one"
_BEARER = "bearer"


def presented_key(environ: dict[str, Any]) -> bytes:
    """The bytes of the key, which need be no ASCII; raises GatewayError for none and for several.

    An Authorization of another scheme is not meant for the gateway and no key.
    """
    scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    given = {
        token.strip() if scheme.lower() == _BEARER else "",
        environ.get("HTTP_X_API_KEY", "").strip(),
        environ.get("HTTP_API_KEY", "").strip(),
    } - {""}
    if len(given) == 1:
        # WSGI has a header's bytes as Latin-1 (PEP 3333).
        return str(given.pop()).encode("latin-1", "backslashreplace")
    raise GatewayError(Kind.UNAUTHORIZED, _SEVERAL if given else _NONE)
