"""What the requests of a fuzzer are put together of."""

from __future__ import annotations

from typing import Any

METHODS = [
    *["GET", "POST", "POST", "POST"] * 12, "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
    "CONNECT", "PRI", "get", "BREW", "X" * 30, "G(T",
]
VERSIONS = ["HTTP/1.0", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "http/1.1"]
HOSTS = ["localhost", "127.0.0.1:80", "evil.example", "", "a b", "[::1]", "[::1", "x" * 300,
         "localhost:99999", "\xff", "local\tho", "a@b", "LOCALHOST"]
MAIN = [
    "/v1/chat/completions", "/api/chat", "/api/generate", "/v1/messages", "/api/embed", "/api/show",
    "/v1/inference", "/v1/inference/stream", "/v1/completions", "/v1/embeddings", "/upstream/m/x",
    "/completion", "/engines", "/metrics", "/v1/models",
]
PATHS = [
    "/", "/health", "/engines", "/engines/x", "/metrics", "/metrics/", "/openapi.json",
    "/v1/models", "/models", "/v1/models/m", "/v1/models/org/name:tag",
    "/v1/models/org%2Fname%3Atag", "/v1/completions", "/v1/embeddings", "/v1/responses",
    "/v1/audio/transcriptions", "/v1/nope", "/v1/inference", "/v1/inference/stream", "/api/tags",
    "/api/ps", "/api/version", "/api/show", "/api/embeddings", "/api/create", "/api/copy",
    "/api/push", "/api/delete", "/api/blobs/sha256:0", "/api/blobs/sha256:" + "0" * 64, "/api/me",
    "/api/user/keys/x", "/api/chat/", "/api//tags", "/completion", "/infill", "/tokenize", "/props",
    "/slots", "/slots/0", "/slots/" + "9" * 40, "/lora-adapters", "/upstream", "/upstream/",
    "/upstream/m/x", "/upstream/m/../x", "/upstream/org/name:tag/v1/chat/completions",
    "/upstream/m/%00", "/upstream/m//x?y", "/%00", "/v1/models/%00", "/v1/models/%ff%fe",
    "/v1/models/%zz", "/v1/models/%", "/%2e%2e/%2e", "/v1/models/..%2F..%2Fetc%2Fpasswd",
    "/v1/models/" + "a" * 4000, "/v1/models/\xff", "/\u00fc", "/v1/models/%E2%82%AC",
    "/v1/models/%ED%A0%80", "/v1/models/<b>", "/v1/./models", "/../v1/models", "//", "///",
    "//v1/models", "//evil.example/v1/models", "*", "", "x", "localhost:80",
    "http://localhost/v1/models", "http://localhost", "http://", "https://[::1", "http://[/x",
    "http://a:b@c/v1/models", "http://localhost:99999/", "ftp://x/y", "/v1/models#x", "/;a=b",
]
QUERIES = [
    "?", "?model=m", "?model=nope", "?model=", "?model=%00", "?model=%ff", "?%", "?model=a&model=b",
    "?" + "a=b&" * 500, "?stream=true", "?x=\xff", "?;", "#f", "?model[]=m",
]
CONTENT_TYPES = [f"Content-Type: {kind}" for kind in (
    "application/json", "application/json", "application/json; charset=utf-8", "text/plain", "",
    "application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=",
    "multipart/form-data; boundary=b", "application/json; charset=utf-16", "\xff", "a" * 2000)]
FIELDS = [
    "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999",
    "Content-Length: 1, 1", "Content-Length: ", "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
    "Transfer-Encoding: \x0bchunked", "Content-Encoding: gzip", "Content-Encoding: br",
    "Content-Encoding: gzip, gzip", "Content-Encoding: zstd", "Content-Encoding: identity",
    "Content-Encoding: ", "Expect: 100-continue", "Expect: tea", "Connection: close",
    "Connection: upgrade", "Connection: keep-alive, X-Drop", "Upgrade: h2c", "Upgrade: websocket",
    "HTTP2-Settings: AAMAAABk", "Authorization: Bearer x", "Authorization: Basic \xff",
    "Authorization: ", "x-api-key: \xff", "Origin: https://evil.example", "Origin: null",
    "Origin: http://localhost:3000", "Origin: ://", "Origin: http://[",
    "Access-Control-Request-Method: POST", "X-Request-Id: a b", "X-Request-Id: \x7f",
    "X-Request-Id: good-1", "X-Forwarded-For: 1.2.3.4", "Cookie: a=b; =; c", "Accept: */*",
    "Accept: text/event-stream", "Accept: \xff", "Accept-Encoding: gzip;q=x", "Range: bytes=0-1",
    "Range: bytes=-", "If-None-Match: *", "If-Modified-Since: never",
    "X-HTTP-Method-Override: DELETE", "Host: other", "SCRIPT_NAME: /x", "Script-Name: /x",
    "X_Under: 1", "Trailer: X", "TE: trailers", "X: " + "y" * 10000, " folded: x", "no colon",
    "User-Agent: \x1b[2J", "Date: x", "Proxy: http://x", "Max-Forwards: 0",
    "Content-Range: bytes 0-1/2",
]
WORDS = [
    "model", "modelId", "messages", "stream", "role", "content", "temperature", "max_tokens",
    "prompt", "input", "tools", "images", "format", "options", "keep_alive", "think", "raw",
    "template", "system", "suffix", "context", "n", "sampling", "requestId", "x_juno_priority",
    "x_juno_session_id", "x_juno_top_k", "max_completion_tokens", "tool_calls", "name", "source",
    "destination", "from", "files", "digest", "logprobs", "top_logprobs", "truncate", "dimensions",
    "type", "text", "image_url", "url", "num_ctx", "stop", "response_format", "tool_choice", "",
    "\u0000", "\ud800", "__proto__",
]
SCALARS: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**400, 0.1, -0.0, 1e308, float("inf"),
    float("nan"), "", " ", "m", "nope", "x" * 5000, "\u0000", "\ud800", "\u20ac", "5m", "-1",
    "1e999", "json", "HIGH", "user", "http://127.0.0.1:1/x.png", "file:///etc/passwd",
    "data:image/png;base64,AAAA", "data:;base64,!", "aGk=", [], {}, [[[[]]]], {"type": "text"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
]
GREETINGS = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),  # TLS, ClientHello
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",  # HTTP/2, preface
    b"\r\n\r\n\r\n", b"\n", b"\0" * 100, b"GET /", b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n",
    b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"EHLO x\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"GET / HTTP/1.1\nHost: localhost\n\n", b"GET /health\r\n", b" GET /health HTTP/1.1\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 300 + b"\r\n",
    b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"a" * 300000 + b"\r\n\r\n",
]
