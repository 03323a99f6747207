"""Which web pages may call the gateway: origins, by scheme, host and port.

Source of those that always may: github.com/ollama/ollama, envconfig/config.go (AllowedOrigins).
Ollama's library compares a pattern with a ``*`` as a text, so that ``http://localhost:*`` lets
``http://localhost.evil.example`` in; here each part is compared by itself.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

ANY = "*"
_SCHEMES = ("http", "https")
_HOSTS = ("localhost", "127.0.0.1", "0.0.0.0", "[::1]")
_APPS = ("app", "file", "tauri", "vscode-webview", "vscode-file")
_ALWAYS = (
    *(f"{scheme}://{host}:*" for scheme in _SCHEMES for host in _HOSTS),
    *(f"{scheme}://*" for scheme in _APPS),
)
# scheme://* · scheme://host · scheme://*.host · each of the last two with :port or :*
_PATTERN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://"
    r"(?:\*|(?P<below>\*\.)?(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>\*|[0-9]{1,5}))?)"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_LONGEST = 512  # characters of an origin


class AllowedOrigins:
    """The values of ``Origin`` whose pages may call."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """``patterns`` are those beside the local ones; raises ValueError for one that is none."""
        self.every = ANY in patterns
        self.regexes = [regex(pattern) for pattern in (*_ALWAYS, *patterns) if pattern != ANY]
        self._known = lru_cache(1024)(self._is_known)

    def allows(self, origin: str, host: str) -> bool:
        """Whether a page of ``origin`` may call a gateway that it knows as ``host``.

        One that the gateway's own address gave the browser may: that is no other origin.
        """
        if self.every or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return True
        return len(origin) <= _LONGEST and self._known(origin)

    def _is_known(self, origin: str) -> bool:
        return any(regex.match(origin) for regex in self.regexes)


def regex(pattern: str) -> re.Pattern[str]:
    """What matches exactly the origins of a pattern; raises ValueError where it is none.

    The port of ``*`` is any or none; a scheme's own port is the same as none.
    """
    match = _PATTERN.fullmatch(pattern.lower())
    if not match:
        raise ValueError(f"{pattern!r} is no origin")
    scheme, host, port = match["scheme"], match["host"], match["port"]
    start = re.escape(scheme) + "://"
    if host is None:
        return re.compile(start + r"[^\s/]*/?\Z", re.IGNORECASE)
    below = r"(?:[a-z0-9_-]+\.)+" if match["below"] else ""
    own = port is None or port == _DEFAULT_PORTS.get(scheme)
    end = "" if own else r"(?::[0-9]{1,5})?" if port == "*" else f":{port}"
    return re.compile(start + below + re.escape(host) + end + r"\Z", re.IGNORECASE)
