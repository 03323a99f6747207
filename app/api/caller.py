"""Who calls, as far as fairness between callers goes: nobody is trusted or refused by it."""

import ipaddress

from flask import request

_LONGEST = 256  # characters of a name; more tells nobody apart


def caller() -> str:
    """The key that the request carries, else the address it comes from.

    A proxy on this machine says the address itself, in X-Forwarded-For.
    """
    headers = request.headers
    key = headers.get("Authorization") or headers.get("X-Api-Key") or headers.get("Api-Key")
    if key:
        return f"key {hash(key)}"  # nobody has to see it
    address = request.remote_addr or ""
    forwarded = headers.get("X-Forwarded-For", "")
    if forwarded and _loopback(address):
        address = forwarded.partition(",")[0].strip()
    return f"address {address[:_LONGEST]}"


def _loopback(address: str) -> bool:
    try:
        return not address or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
