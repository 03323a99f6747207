"""Which names the gateway answers to."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from app.hosts import AllowedHosts, is_loopback

LOCAL = [
    "", "localhost", "localhost:11434", "LOCALHOST", "localhost.", "127.0.0.1", "127.0.0.1:80",
    "127.1.2.3", "[::1]", "[::1]:11434", "0.0.0.0", "[::]", "10.0.0.1:1", "192.168.1.2",
    "172.16.0.1", "169.254.1.1", "100.64.0.1", "[fe80::1]", "[fd00::1]:5", "my.localhost",
    "printer.local", "Printer.LOCAL:80", "gateway.internal", "gateway", "loop_gateway:8080",
]
FOREIGN = [
    "evil.example", "evil.example:11434", "localhost.evil.example", "127.0.0.1.evil.example",
    "localhost.com", "xlocal.example", "local.", "a.local.example", "internal.example",
    "8.8.8.8", "8.8.8.8:11434", "[2001:4860:4860::8888]", "[::ffff:8.8.8.8]",
    "a b", "a b:x/", "localhost,evil.example", "evil.example,localhost", "user@localhost",
    "localhost/", "localhost:x", "[::1", "::1", "[localhost]", "localhost\t", "ünder.local",
    "localhost:80:80", "\x00", "a" * 1000, "evil.example#.local", "evil.example?.local",
]


@pytest.mark.parametrize("host", LOCAL)
def test_local_names_are_answered(host: str) -> None:
    """Those that no page of the Internet can have, with any port, and a request without one."""
    assert AllowedHosts("127.0.0.1", ()).allows(host)


@pytest.mark.parametrize("host", [each for each in FOREIGN if each != "local."])
@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "[::1]"])
def test_other_names_are_not(address: str, host: str) -> None:
    """Whoever made such a name lead here wants to read what only this machine may."""
    assert not AllowedHosts(address, ()).allows(host)


@pytest.mark.parametrize("name", [socket.gethostname(), f"{socket.gethostname().upper()}:11434"])
def test_the_machines_own_name_is_answered(name: str) -> None:
    """Whatever it is."""
    assert AllowedHosts("127.0.0.1", ()).allows(name)


@pytest.mark.parametrize("host", [*LOCAL, *FOREIGN])
@pytest.mark.parametrize(("address", "names"), [
    ("0.0.0.0", ()), ("::", ()), ("192.168.1.5", ()), ("127.0.0.1", ("*",)), ("0.0.0.0", ("*",))])
def test_every_name_is_answered(address: str, names: Sequence[str], host: str) -> None:
    """On an address that others reach by names of their own, or where it is wished so."""
    assert AllowedHosts(address, names).allows(host)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "203.0.113.5"])
@pytest.mark.parametrize(("host", "allowed"), [
    ("gw.example.org", True), ("GW.example.org:443", True), ("gw.example.org.", True),
    ("x.gw.example.org", False), ("gw.example.org.evil.example", False), ("example.org", False),
    ("a.lan.example", True), ("a.b.lan.example", True), ("lan.example", False),
    ("xlan.example", False), ("localhost", True), ("192.168.7.7", True), ("evil.example", False),
    ("8.8.4.4", True), ("8.8.8.8", False)])
def test_names_are_added(address: str, host: str, allowed: bool) -> None:
    """Exactly these, or all below one; then they are checked on every address."""
    names = ("gw.example.org", "*.lan.example", "8.8.4.4")
    assert AllowedHosts(address, names).allows(host) == allowed


def test_the_bound_address_is_a_name() -> None:
    """Whoever listens on a public one is called by it."""
    assert AllowedHosts("8.8.8.8", ("gw.example.org",)).allows("8.8.8.8:11434")


@pytest.mark.parametrize(("address", "expected"), [
    ("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("::1", True), ("[::1]", True),
    ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.example", False),
    ("", False)])
def test_loopback_is_what_no_other_machine_reaches(address: str, expected: bool) -> None:
    """Names other than localhost are not looked up."""
    assert is_loopback(address) == expected
