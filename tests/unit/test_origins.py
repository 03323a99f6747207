"""Which pages may call: scheme, host and port are compared each by itself."""

from __future__ import annotations

import pytest

from app.origins import AllowedOrigins, regex

HOST = "gw.example.org:8080"
ALWAYS = [
    *[f"{scheme}://{host}{port}" for scheme in ("http", "https")
      for host in ("localhost", "127.0.0.1", "0.0.0.0", "[::1]") for port in ("", ":1", ":65535")],
    "HTTP://LOCALHOST:3000", "app://obsidian.md", "app://x", "file://", "tauri://localhost",
    "vscode-webview://1ab2c3", "vscode-file://vscode-app",
]
# Source of the first: the pattern http://localhost:* compared as a text lets them in.
NEVER = [
    "http://localhost.evil.example", "http://localhost.evil.example:80", "http://localhostx",
    "https://127.0.0.1.evil.example", "http://127.0.0.10", "http://0.0.0.0.example",
    "http://evil.example", "https://evil.example", "http://evil.example:11434", "null", "",
    "http://localhost@evil.example", "http://user@localhost", "http://localhost:80@evil.example",
    "http://localhost/", "http://localhost:", "http://localhost:x", "http://localhost:123456",
    "http://localhost\n", "http://evil.example\nhttp://localhost", "http://localhost evil",
    "chrome-extension://abcdef", "moz-extension://abcdef", "safari-web-extension://abcdef",
    "ftp://localhost", "localhost", "//localhost", "http:/localhost", "xapp://y", "app:x",
    "http://localhost,http://evil.example", "http://" + "a" * 10_000,
]


@pytest.mark.parametrize("origin", ALWAYS)
def test_local_pages_and_apps_may_call(origin: str) -> None:
    """With any port: as Ollama allows them."""
    assert AllowedOrigins(()).allows(origin, HOST)


@pytest.mark.parametrize("origin", NEVER)
def test_other_pages_may_not(origin: str) -> None:
    """Nor what only looks local, nor extensions of browsers."""
    assert not AllowedOrigins(()).allows(origin, HOST)
    assert not AllowedOrigins(("https://chat.example.org",)).allows(origin, HOST)


@pytest.mark.parametrize(("origin", "host", "allowed"), [
    ("http://gw.example.org:8080", HOST, True), ("https://gw.example.org:8080", HOST, True),
    ("http://GW.example.org:8080", HOST, True), ("https://gw.example.org", "gw.example.org", True),
    ("http://gw.example.org", HOST, False), ("http://gw.example.org:8081", HOST, False),
    ("app2://gw.example.org:8080", HOST, False), ("http://", "", True)])
def test_a_page_of_the_gateways_own_address_may(origin: str, host: str, allowed: bool) -> None:
    """It is the same origin, behind TLS that ends before the gateway too."""
    assert AllowedOrigins(()).allows(origin, host) == allowed


CONFIGURED = [
    ("https://chat.example.org", "https://chat.example.org", True),
    ("https://chat.example.org", "HTTPS://Chat.Example.org", True),
    ("https://chat.example.org", "http://chat.example.org", False),
    ("https://chat.example.org", "https://chat.example.org:8443", False),
    ("https://chat.example.org", "https://x.chat.example.org", False),
    ("https://chat.example.org", "https://chat.example.org.evil.example", False),
    ("https://chat.example.org", "https://chatxexample.org", False),
    ("https://chat.example.org:443", "https://chat.example.org", True),
    ("http://chat.example.org:80", "http://chat.example.org", True),
    ("http://chat.example.org:8080", "http://chat.example.org:8080", True),
    ("http://chat.example.org:8080", "http://chat.example.org", False),
    ("http://chat.example.org:*", "http://chat.example.org", True),
    ("http://chat.example.org:*", "http://chat.example.org:5", True),
    ("http://chat.example.org:*", "http://chat.example.org.evil.example", False),
    ("https://*.example.org", "https://a.example.org", True),
    ("https://*.example.org", "https://a.b.example.org", True),
    ("https://*.example.org", "https://example.org", False),
    ("https://*.example.org", "https://evil.example?.example.org", False),
    ("https://*.example.org", "https://aexample.org", False),
    ("chrome-extension://*", "chrome-extension://abcdef", True),
    ("chrome-extension://abcdef", "chrome-extension://abcdef", True),
    ("chrome-extension://abcdef", "chrome-extension://abcdeg", False),
    ("http://[fd00::1]:3000", "http://[fd00::1]:3000", True),
    ("*", "https://evil.example", True), ("*", "null", True),
]


@pytest.mark.parametrize(("pattern", "origin", "allowed"), CONFIGURED)
def test_origins_are_added(pattern: str, origin: str, allowed: bool) -> None:
    """A whole origin, all below a host, any port, or any of a scheme."""
    origins = AllowedOrigins((pattern,))
    assert origins.allows(origin, HOST) == allowed
    assert origins.allows("http://localhost:3000", HOST)


@pytest.mark.parametrize("pattern", [
    "", "chat.example.org", "https://", "https://a/b", "https://a?b", "https://a b", "https://*a",
    "https://a.*", "https://a:x", "https://a:123456", "//a", "https://a@b", "https://ü", "null",
    "h*://a", "https://a..b", "https://a/*"])
def test_what_is_no_origin_is_no_pattern(pattern: str) -> None:
    """It would silently match nothing, or too much."""
    with pytest.raises(ValueError, match="is no origin"):
        regex(pattern)
