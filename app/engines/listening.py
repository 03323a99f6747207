"""Who listens where on this machine, from /proc/net/tcp, /proc/net/tcp6 and /proc/PID/fd (proc(5)).

A process whose descriptors we may not read (another user's, or one with privileges of its own)
counts as listening nowhere.
"""

import enum
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator

_LISTEN = b"0A"  # TCP_LISTEN, include/net/tcp_states.h
_PIECE = 1024  # bytes read at a time; to fill more, the kernel would look for connections


def _in_table(family: socket.AddressFamily, address: str) -> bytes:
    """The address as the kernel writes it: words of four bytes, each in the machine's order."""
    packed = socket.inet_pton(family, address)
    words = [packed[at:at + 4] for at in range(0, len(packed), 4)]
    return b"".join(b"%08X" % int.from_bytes(word, sys.byteorder) for word in words)


_REACHED = {  # where what connects to 127.0.0.1 may arrive
    _in_table(socket.AF_INET, "127.0.0.1"), _in_table(socket.AF_INET, "0.0.0.0"),
    _in_table(socket.AF_INET6, "::"), _in_table(socket.AF_INET6, "::ffff:127.0.0.1"),
    _in_table(socket.AF_INET6, "::ffff:0.0.0.0")}


class Listener(enum.Enum):
    """Who would get a connection to a port."""

    NOBODY = "nobody"
    OURS = "ours"
    STRANGER = "stranger"


def listener(port: int, ours: Callable[[], Iterable[int]]) -> Listener:
    """Who listens on `port` of 127.0.0.1, or of all addresses; `ours` gives our process ids.

    Ours only if all that listen there are: with SO_REUSEPORT several may, and the kernel chooses.
    An IPv6 socket on all addresses counts even if it takes no IPv4, which cannot be seen. Cheap
    enough for every 50 ms: `ours` is asked only once anybody listens.
    """
    first = _look(port, ours)
    # What was closed, or handed to a child, between two readings looks like a stranger's.
    return _look(port, ours) if first is Listener.STRANGER else first


def ports_of(pids: Iterable[int]) -> set[int]:
    """The TCP ports that these processes listen on, of whatever address."""
    held = _sockets(pids)
    return {port for _, port, inode in _listening() if inode in held}


def _look(port: int, ours: Callable[[], Iterable[int]]) -> Listener:
    found = {inode for address, at, inode in _listening() if at == port and address in _REACHED}
    if not found:
        return Listener.NOBODY
    return Listener.OURS if found <= _sockets(ours()) else Listener.STRANGER


def _listening() -> Iterator[tuple[bytes, int, int]]:
    """Address, port and inode of every listening socket.

    Listening ones come first (Documentation/networking/proc_net_tcp.rst), and to go through
    connections takes long where there are many.
    """
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, "rb", buffering=_PIECE) as lines:
                next(lines, None)  # the heading
                for fields in map(bytes.split, lines):
                    if fields[3] != _LISTEN:
                        break
                    address, _, port = fields[1].partition(b":")
                    yield address, int(port, 16), int(fields[9])
        except FileNotFoundError:  # no IPv6, or no /proc
            continue


def _sockets(pids: Iterable[int]) -> set[int]:
    """The inodes of all sockets that these processes hold."""
    return {inode for pid in pids for inode in _sockets_of(pid)}


def _sockets_of(pid: int) -> Iterator[int]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:  # it has ended, or is none of our business
        return
    for name in names:
        try:
            kind, _, rest = os.readlink(f"{folder}/{name}").partition(":[")
        except OSError:  # closed meanwhile
            continue
        if kind == "socket":
            yield int(rest[:-1])
