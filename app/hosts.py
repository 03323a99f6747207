"""Which names the gateway answers to: a page that lets its own name lead here is not answered.

Source of the rule: github.com/ollama/ollama, server/routes.go (allowedHost), and DNS rebinding.
"""

import ipaddress
import re
import socket
from collections.abc import Sequence
from functools import lru_cache

ANY = "*"
# A name, or one below it where it begins with "*."; no port, as any will do.
PATTERN = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{0,253})(:[0-9]{0,5})?")
_LONGEST = 300  # characters
# Names that the public DNS does not have, so nobody can let one lead here.
_LOCAL = (".localhost", ".local", ".internal")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AllowedHosts:
    """The values of ``Host`` that are answered."""

    def __init__(self, address: str, names: Sequence[str]) -> None:
        """``address`` is where the gateway listens, ``names`` what it is called beside that."""
        self._every = ANY in names or not (names or is_loopback(address))
        self._names = {socket.gethostname().lower(), address.lower().strip("[]")}
        self._names |= {name for name in names if not name.startswith("*.")}
        self._below = _LOCAL + tuple(name[1:] for name in names if name.startswith("*."))
        self._known = lru_cache(1024)(self._is_known)

    def allows(self, host: str) -> bool:
        """Whether a request with this ``Host`` is answered; one without it is."""
        return self._every or (len(host) <= _LONGEST and self._known(host))

    def _is_known(self, host: str) -> bool:
        match = _HOST.fullmatch(host.lower())
        if not match:
            return False
        name = match[1].strip("[]").removesuffix(".")
        address = _address(name)
        if address:
            return not address.is_global or name in self._names or _is_own(address)
        # A name without a dot is one of the local network too.
        return "." not in name or name in self._names or name.endswith(self._below)


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address."""
    found = _address(address.strip("[]"))
    return address == "localhost" or bool(found and found.is_loopback)


def _address(name: str) -> Address | None:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_own(address: Address) -> bool:
    """Whether it is one of this machine's: only such an address can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
