"""Sends calls to one engine through one requests Session: bytes in, bytes out."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial

import requests
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import IncompleteRead
from urllib3.response import BaseHTTPResponse

from app.call import Call, Reply
from app.engines import answers
from app.engines.connection import EngineAdapter, StaleConnection, Working, chunks, working
from app.engines.failures import BrokenConnection, Limits, mapped
from app.engines.hangup import Departure
from app.errors import GatewayError, Kind

_MOMENT = 0.05  # s; engines send the end of a body together with the last event
_AT_ONCE = 0.5  # s; an engine that has worked on a call for longer has seen it
_HOOKS = requests.hooks.default_hooks()


class EngineClient:
    """The gateway's side of one engine. Safe to use from many threads."""

    def __init__(self, url: str, api_key: str | None, limits: Limits, connections: int) -> None:
        """``url`` without a trailing slash; up to ``connections`` are kept open."""
        self._url = url
        self.limits = limits
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "loop-gateway"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._session = requests.Session()
        self._session.trust_env = False
        self._adapter = EngineAdapter(url, connections)
        self._session.mount(url, self._adapter)

    def close(self) -> None:
        """Close the idle connections; calls that run go on."""
        self._session.close()

    def send(
        self, call: Call, departure: Departure, heard: Callable[[], None] = lambda: None
    ) -> Reply:
        """Send the call; the reply's body is there, or arrives in pieces.

        ``heard`` is called whenever the engine has sent something, and must not block.
        Blocks until the engine answers, is silent for longer than its limit, or the client leaves.
        Raises GatewayError. Whoever gets the reply closes it. The call is sent a second time only
        where the engine cannot have seen it.
        """
        began = time.monotonic()
        try:
            return self._exchange(call, departure, heard)
        except StaleConnection as error:
            if time.monotonic() - began > _AT_ONCE:
                raise BrokenConnection.because(str(error)) from error
            self._adapter.close()
        try:
            return self._exchange(call, departure, heard)
        except StaleConnection as error:
            raise BrokenConnection.because(str(error)) from error
        except GatewayError as error:
            if error.kind is not Kind.ENGINE_UNAVAILABLE:
                raise
            # It listened a moment ago, and may have ended because of this very call.
            raise BrokenConnection.because("it ended without an answer") from error

    def _exchange(self, call: Call, departure: Departure, heard: Callable[[], None]) -> Reply:
        limits = self._limits_of(call)
        token = working.set(Working(departure, limits.read))
        try:
            with mapped(self._url, limits, departure):
                # Past Session.send, which would store cookies and follow redirects.
                adapter = self._session.get_adapter(self._url)
                timeout = (limits.connect, limits.read)
                raw = adapter.send(self._request(call), stream=True, timeout=timeout).raw
        finally:
            working.reset(token)
        heard()
        headers = answers.passing(raw.headers.items(), _can_unpack(raw))
        with_errors = mapped(self._url, limits, departure)
        pieces = _pieces(raw, with_errors, departure, heard)
        reply = Reply(raw.status, headers, pieces, None, raw.close, partial(_finish, raw, pieces))
        try:
            answers.judge(reply, call.passing)
            if answers.arrives_in_pieces(reply):
                return replace(reply, length=_length(raw))
            whole = Reply.whole(reply.status, headers, reply.body)
            answers.require_json(whole, call.passing)
            return whole
        except BaseException:
            raw.close()
            raise

    def _limits_of(self, call: Call) -> Limits:
        if call.limit is None:
            return self.limits
        return Limits(min(self.limits.connect, call.limit), call.limit)

    def _request(self, call: Call) -> requests.PreparedRequest:
        """The request as it goes out: of the client's only what the call holds."""
        request = requests.PreparedRequest()
        request.method = call.method
        request.url = self._url + call.target
        request.headers = CaseInsensitiveDict(self._headers)
        request.headers["Accept"] = call.accept
        request.headers["X-Request-Id"] = call.request_id
        if call.body.content_type:
            request.headers["Content-Type"] = call.body.content_type
        if call.body.raw or call.method not in ("GET", "HEAD", "OPTIONS"):
            request.headers["Content-Length"] = str(len(call.body.raw))
            request.body = call.body.raw  # type: ignore[assignment]
        request.hooks = _HOOKS
        return request


def _pieces(
    raw: BaseHTTPResponse, with_errors: AbstractContextManager[None], departure: Departure,
    heard: Callable[[], None],
) -> Iterator[bytes]:
    """The body as it arrives, unpacked; ends only where it is whole."""
    packed = "content-encoding" in raw.headers and _can_unpack(raw)
    with with_errors:
        if raw.chunked and not packed:
            for piece in chunks(raw):
                heard()
                yield piece
        else:
            while piece := raw.read1(decode_content=packed):
                heard()
                yield piece
        if departure.gone or raw.length_remaining:
            raise IncompleteRead(raw.tell(), raw.length_remaining or 0)


def _finish(raw: BaseHTTPResponse, pieces: Iterator[bytes]) -> None:
    """Take the rest of a body that should be at its end; blocks for ``_MOMENT`` at most.

    What is still open afterwards is closed with the reply.
    """
    sock = getattr(raw.connection, "sock", None)
    end = time.monotonic() + _MOMENT
    with suppress(GatewayError):
        while sock and (left := end - time.monotonic()) > 0:
            sock.settimeout(left)
            if next(pieces, None) is None:
                return


def _can_unpack(raw: BaseHTTPResponse) -> bool:
    codings = raw.headers.get("content-encoding", "identity").lower().split(",")
    return all(coding.strip() in {"identity", *raw.CONTENT_DECODERS} for coding in codings)


def _length(raw: BaseHTTPResponse) -> int | None:
    """The length a body that arrives in pieces will have, where that is known."""
    return None if "content-encoding" in raw.headers else raw.length_remaining
