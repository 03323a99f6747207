"""What an engine's answer means: what passes, what becomes an error, and what is left out."""

from __future__ import annotations

import pytest

from app.call import Headers, Passing, Reply
from app.engine_message import message
from app.engines.answers import judge, passing
from app.errors import GatewayError, Kind

SAID = b'{"error":{"code":1,"message":"it said so","type":"t"}}'


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 299, 400, 401, 403, 404, 408, 409,
                                    413, 422, 429, 451, 499, 503])
def test_answers_pass(status: int) -> None:
    """Success, the caller's own faults, and "not ready": status, headers and bytes as they are."""
    judge(Reply.whole(status, [("Retry-After", "30")], SAID), Passing.SOUND)


@pytest.mark.parametrize("status", [500, 501, 502, 504, 505, 507, 511, 529, 599])
def test_faults_of_the_engine_become_an_upstream_error(status: int) -> None:
    """The message has the engine's status and its own words."""
    with pytest.raises(GatewayError) as raised:
        judge(Reply.whole(status, [], SAID), Passing.SOUND)
    assert raised.value.kind is Kind.UPSTREAM_ERROR
    assert raised.value.message == f"the engine answered {status}: it said so"


@pytest.mark.parametrize("status", [101, 199, 300, 301, 302, 303, 304, 307, 308, 399])
def test_what_is_no_answer_becomes_an_upstream_error(status: int) -> None:
    """A redirect would send the caller past the gateway."""
    with pytest.raises(GatewayError) as raised:
        judge(Reply.whole(status, [("Location", "http://elsewhere")], SAID), Passing.SOUND)
    assert raised.value.kind is Kind.UPSTREAM_ERROR
    assert raised.value.message == (
        f"the engine answered {status}, which the gateway does not follow")


@pytest.mark.parametrize("body", [b"", b"  \n", b"<html></html>", b'{"error":{"message":""}}'])
def test_a_fault_without_a_word_says_so(body: bytes) -> None:
    """The message does not end in a colon."""
    with pytest.raises(GatewayError) as raised:
        judge(Reply.whole(500, [], body), Passing.SOUND)
    assert raised.value.message == "the engine answered 500 without a word"


MESSAGES: list[tuple[bytes, str]] = [
    (SAID, "it said so"),
    (b'{"error":"a plain text"}', "a plain text"),
    ('{"error":{"message":"grüße 北"}}'.encode(), "grüße 北"),
    (b'{"error":{"message":"a <b> & c"}}', "a <b> & c"),
    (b'{"error":{"message":"%b"}}' % (b"x" * 500), "x" * 500),
    (b'{"error":{"message":5}}', '{"error":{"message":5}}'),
    (b'{"error":{"code":1}}', '{"error":{"code":1}}'),
    (b'{"error":null}', '{"error":null}'),
    (b'{"error":[]}', '{"error":[]}'),
    (b'{"detail":"no"}', '{"detail":"no"}'),
    (b'["no"]', '["no"]'),
    (b'{"detail":"%b"}' % (b"x" * 500), '{"detail":"' + "x" * 189),
    (b"no model loaded", "no model loaded"),
    (b"  two\n\n  lines\t", "two lines"),
    (b"x" * 201, "x" * 200),
    (b"", ""),
    (b"grue\xdf", "grue\ufffd"),
    (b'{"error":{"message":"cut', '{"error":{"message":"cut'),
    (b"<html><head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>502 Bad Gateway</h1>"
     b"</center><hr><center>nginx</center></body></html>", "502 Bad Gateway 502 Bad Gateway nginx"),
    (b"<style>p { color: red }</style><p>sorry</p><SCRIPT>alert('<p>')</SCRIPT >", "sorry"),
    (b'<p title="x">a</p><!-- b --><br/>c', "a c"),
    (b"<p>" * 100 + b"x" * 300, "x" * 200),
    (b"1 < 2", "1 < 2"),
    (b"<html>" + b" " * 30_000 + b"</html>", ""),
]


@pytest.mark.parametrize(("body", "text"), MESSAGES, ids=lambda value: repr(value)[:30])
def test_the_engines_own_words_are_found(body: bytes, text: str) -> None:
    """Its error message, else the start of what it sent, on one line and without markup."""
    assert message(body) == text


@pytest.mark.parametrize("body", [b"<" * 1_000_000, b"<script" * 100_000, b"[" * 1_000_000,
                                  b"\xff" * 1_000_000, b"9" * 1_000_000, b"<!--" * 100_000])
def test_a_long_error_page_is_not_shown_whole(body: bytes) -> None:
    """Whatever an engine sends, the words are few."""
    assert len(message(body)) <= 200


PASSING: list[tuple[Headers, list[str]]] = [
    ([("Content-Type", "application/json; charset=utf-8"), ("Retry-After", "30"),
      ("x-ratelimit-remaining-requests", "0"), ("X-Custom", "y"), ("Cache-Control", "no-cache")],
     ["Content-Type", "Retry-After", "x-ratelimit-remaining-requests", "X-Custom",
      "Cache-Control"]),
    ([("Connection", "keep-alive"), ("Keep-Alive", "timeout=5"), ("TE", "trailers"),
      ("Trailer", "X-T"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"),
      ("Proxy-Authenticate", "Basic"), ("Proxy-Authorization", "x"), ("Proxy-Connection", "x")],
     []),
    ([("Connection", "close, X-Hop , x-other"), ("X-Hop", "1"), ("x-Other", "2"), ("X-Stays", "3")],
     ["X-Stays"]),
    ([("Connection", "X-A"), ("connection", "X-B"), ("X-A", "1"), ("X-B", "2"), ("X-C", "3")],
     ["X-C"]),
    ([("Server", "llama.cpp"), ("Date", "now"), ("X-Request-Id", "theirs"), ("Set-Cookie", "a=b"),
      ("SET-COOKIE", "c=d"), ("Set-Cookie2", "x"), ("WWW-Authenticate", "Bearer")], []),
    ([("Content-Length", "5"), ("Content-Encoding", "gzip")], []),
    ([("Access-Control-Allow-Origin", "*"), ("access-control-expose-headers", "x")], []),
    ([("Timing-Allow-Origin", "*"), ("Cross-Origin-Resource-Policy", "cross-origin"),
      ("cross-origin-opener-policy", "unsafe-none"), ("Cross-Origin-Embedder-Policy", "x"),
      ("Clear-Site-Data", '"*"'), ("Strict-Transport-Security", "max-age=9"),
      ("Alt-Svc", 'h2="evil:443"'), ("NEL", "{}"), ("Report-To", "{}"),
      ("Reporting-Endpoints", "a=\"x\""), ("Origin-Agent-Cluster", "?1"),
      ("Service-Worker-Allowed", "/"), ("X-Timing", "1")], ["X-Timing"]),
    ([("X-Two", "1"), ("X-Two", "2")], ["X-Two", "X-Two"]),
    ([], []),
]


@pytest.mark.parametrize(("headers", "names"), PASSING)
def test_only_headers_for_the_client_pass(headers: Headers, names: list[str]) -> None:
    """In their order and spelling: none of the connection, of cookies, or the gateway's own."""
    assert passing(iter(headers), True) == [pair for pair in headers if pair[0] in names]
