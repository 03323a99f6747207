"""What the path of a request says: to the gateway, to an engine, and to a server between them.

Such a server may decode the path once more, take a backslash for a slash, leave out what stands
behind a semicolon or a NUL, and merge slashes (nginx, Tomcat and IIS each do some of it).
"""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from flask import Flask

from app.errors import GatewayError, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_ROUNDS = 8  # of decoding; nobody has reason for more, and each costs time
_UNUSUAL = re.compile(r"[%\\;?#\x00-\x20\x7f-\xff]|//|/\.")
_SLASH = re.compile(r"[/\\]")
_CUT = re.compile(r"[;?#\0]")  # what follows is no part of a segment's name
_BLANK = "".join(map(chr, range(33))) + "\x7f"
_OVERLONG = (("\xc0\xae", "."), ("\xc0\xaf", "/"))  # UTF-8 that none should read (RFC 3629, 3)
_VERSION = re.compile("/+v1/+")
_MERGED = re.compile("/{2,}")
_NAMED = "models/"  # below it are names, in which slashes count


def register(app: Flask) -> None:
    """Let a path with too many slashes be the one that it means, for every route and engine.

    To be called before others put something around the application.
    """
    app.wsgi_app = _Merging(app.wsgi_app)  # type: ignore[method-assign]


def raw_target(environ: dict[str, Any]) -> str:
    """Path and query as the client wrote them: what was encoded stays encoded.

    Raises GatewayError for a path that may mean another one to whoever reads it next.
    """
    path, query = _split(environ)
    if _UNUSUAL.search(path):
        refuse_dots(path)
    return f"{path}?{query}" if query else path


def refuse_dots(path: str) -> None:
    """Raise GatewayError where a segment of the path is ``.`` or ``..``, however it is written."""
    decoded = _decoded(path)
    if any(name in (".", "..") for name in _names(decoded)):
        raise GatewayError(Kind.INVALID_BODY, "the path holds a dot segment")
    if unquote(decoded) != decoded:
        raise GatewayError(Kind.INVALID_BODY, "the path is encoded too many times")


def folded(path: str) -> str:
    """The shortest path that a server may read in this one; all its spellings have the same."""
    if not _UNUSUAL.search(path):
        return path.rstrip("/").lower()
    return "".join(f"/{name}" for name in _names(_decoded(path)) if name).lower()


def merged(path: str) -> str:
    """The path with one slash in front, and one between the segments of the OpenAI API.

    Elsewhere slashes count: a name may hold two, and below /upstream nothing is changed.
    """
    version = _VERSION.match(path)
    if version is None:
        return "/" + path.lstrip("/")
    rest = path[version.end():]
    return f"/v1/{rest if rest.startswith(_NAMED) else _MERGED.sub('/', rest)}"


def _split(environ: dict[str, Any]) -> tuple[str, str]:
    """Path and query of the request line, which may hold a whole URL."""
    raw = str(environ.get("RAW_URI") or quote(environ["PATH_INFO"].encode("latin-1")))
    parts = urlsplit(f"/.{raw}" if raw.startswith("//") else raw)
    path = parts.path[2:] if raw.startswith("//") else parts.path
    return path if path.startswith("/") else f"/{path}", parts.query


def _decoded(path: str) -> str:
    """The path decoded as often as it can be."""
    for _ in range(_ROUNDS):
        before, path = path, unquote(path, "latin-1")
        if path == before:
            break
    for written, meant in _OVERLONG:
        path = path.replace(written, meant)
    return path


def _names(decoded: str) -> list[str]:
    return [_CUT.split(segment, 1)[0].strip(_BLANK) for segment in _SLASH.split(decoded)]


class _Merging:
    """A WSGI application around another one, which has to see merged paths everywhere."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        if "//" in environ["PATH_INFO"] or "//" in environ.get("RAW_URI", ""):
            path, query = _split(environ)
            environ["PATH_INFO"] = merged(environ["PATH_INFO"])
            environ["RAW_URI"] = f"{merged(path)}?{query}" if query else merged(path)
        return self._application(environ, start_response)
