"""Ports to listen on: whether one can be had, and a free one."""

import socket


def refusal(host: str, port: int) -> OSError | None:
    """Why nothing can listen there now, or None when something can."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As servers do: connections of one that has just ended are no obstacle.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on now; nothing keeps it free afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
