"""A server seen from this machine: its address, what it answers, and a line to try it with."""

import json
import shlex
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address

_LIMIT = 2.0  # s for one answer
_LARGEST_ANSWER = 16 * 1024 * 1024  # bytes


def reachable(address_to_listen_on: str) -> str:
    """The host by which this machine reaches a server that listens there."""
    host = address_to_listen_on.strip("[]")
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "::1"
    return host


def url(host: str, port: int) -> str:
    """The address of a server, as one writes it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def answer(host: str, port: int, path: str) -> bytes | None:
    """What a 200 to GET `path` carries; None for any other answer, and for none within 2 s."""
    connection = HTTPConnection(host, port, timeout=_LIMIT)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.read(_LARGEST_ANSWER) if response.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def models(host: str, port: int) -> list[str]:
    """The models that the gateway lists."""
    try:
        listed = json.loads(answer(host, port, "/v1/models") or b"{}")["data"]
        return [str(model["id"]) for model in listed]
    except (ValueError, LookupError, TypeError):
        return []


def curl(base: str, model: str | None, keyed: bool = False) -> str:
    """A line for a shell: a short chat with the model, or without one the list of models.

    With ``keyed`` it takes the key from the shell's variable KEY.
    """
    if model is None:
        header = '-H "Authorization: Bearer $KEY" ' if keyed else ""
        return f"curl -s {header}{shlex.quote(base + '/v1/models')}"
    message = {"role": "user", "content": "Write one short sentence about the sea."}
    header = ' -H "Authorization: Bearer $KEY"' if keyed else ""
    body = json.dumps({"model": model, "max_tokens": 40, "messages": [message]},
                      separators=(",", ":"))
    return (f"curl -s {base}/v1/chat/completions -H 'Content-Type: application/json' "
            f"-d {shlex.quote(body)}{header}")
