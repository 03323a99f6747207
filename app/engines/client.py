"""Sends calls to one engine through one requests Session: bytes in, bytes out."""

import requests
from requests.structures import CaseInsensitiveDict

from app.call import Call, Reply
from app.engines import answers
from app.engines.connection import EngineAdapter, StaleConnection
from app.engines.failures import Limits, mapped
from app.errors import GatewayError, Kind


class EngineClient:
    """The gateway's side of one engine. Safe to use from many threads."""

    def __init__(self, url: str, api_key: str | None, limits: Limits, connections: int) -> None:
        """``url`` without a trailing slash; up to ``connections`` are kept open."""
        self._url = url
        self._limits = limits
        self._headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        self._headers["User-Agent"] = "loop-gateway"
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._session = requests.Session()
        self._session.trust_env = False
        self._adapter = EngineAdapter(connections)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, self._adapter)

    def send(self, call: Call) -> Reply:
        """POST the call and return the whole answer; 2xx, 4xx and 503 are answers.

        Blocks until it is there or the engine is silent for longer than its limit. Raises
        GatewayError. The call is sent a second time only where the engine cannot have seen it.
        """
        try:
            return answers.judge(self._exchange(call))
        except StaleConnection:
            self._adapter.forget_connections()
        try:
            return answers.judge(self._exchange(call))
        except StaleConnection as error:
            text = f"the connection to the engine failed: {error}"
            raise GatewayError(Kind.UPSTREAM_ERROR, text) from error

    def _exchange(self, call: Call) -> Reply:
        with mapped(self._url, self._limits):
            # Past Session.send, which would store cookies and follow redirects.
            answer = self._adapter.send(
                self._request(call), stream=True, timeout=(self._limits.connect, self._limits.read)
            )
            try:
                body = answer.raw.read(decode_content=True)
                headers = answers.passing(answer.raw.headers.items())
                return Reply(answer.status_code, headers, body)
            finally:
                answer.close()

    def _request(self, call: Call) -> requests.PreparedRequest:
        """The request as it goes out: nothing of the client's but path, body and request id."""
        request = requests.PreparedRequest()
        request.method = "POST"
        request.url = self._url + call.path
        request.headers = CaseInsensitiveDict(self._headers)
        request.headers["Content-Type"] = "application/json"
        request.headers["Content-Length"] = str(len(call.body.raw))
        request.headers["X-Request-Id"] = call.request_id
        request.body = call.body.raw
        request.hooks = requests.hooks.default_hooks()
        return request
