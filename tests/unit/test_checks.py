"""What gunicorn may be told: one worker of the gateway's own kind, built after the fork."""

from __future__ import annotations

from typing import Any

import pytest
from gunicorn.config import Config

from app.server.checks import ONE_WORKER, bind, refuse_unsupported
from app.server.worker import worker_class
from app.settings import ServerSettings


@pytest.mark.parametrize(("address", "expected"), [
    ("127.0.0.1", "127.0.0.1:11434"), ("localhost", "localhost:11434"),
    ("0.0.0.0", "0.0.0.0:11434"), ("::1", "[::1]:11434"), ("[::1]", "[::1]:11434"),
    ("::", "[::]:11434")])
def test_the_address_is_written_as_gunicorn_reads_it(address: str, expected: str) -> None:
    """An IPv6 address needs brackets, with which it may be configured or not."""
    assert bind(ServerSettings(address=address)) == expected


def test_the_port_is_the_configured_one() -> None:
    """It stands behind the address."""
    assert bind(ServerSettings(port=18660)) == "127.0.0.1:18660"


def config(**values: Any) -> Config:
    """gunicorn's settings with the gateway's worker and these values on top."""
    made = Config()
    for name, value in {"worker_class": worker_class(ServerSettings()), **values}.items():
        made.set(name, value)
    return made


@pytest.mark.parametrize("values", [
    {}, {"workers": 1}, {"threads": 512}, {"timeout": 5}, {"worker_class": "gthread"}])
def test_what_fits_is_let_through(values: dict[str, Any]) -> None:
    """Most of gunicorn's settings are the operator's."""
    refuse_unsupported(config(**values))


@pytest.mark.parametrize(("values", "sentence"), [
    ({"workers": 2}, ONE_WORKER),
    ({"workers": 64}, ONE_WORKER),
    ({"preload_app": True},
     "the gateway is built in its worker, after the fork: leave out --preload"),
    ({"worker_class": "sync"},
     "the gateway needs its own worker class: leave out --worker-class"),
    ({"worker_class": "gevent_pywsgi", "workers": 2}, ONE_WORKER),
])
def test_what_does_not_fit_ends_the_process(values: dict[str, Any], sentence: str) -> None:
    """With a sentence that says what to do instead."""
    with pytest.raises(SystemExit) as raised:
        refuse_unsupported(config(**values))
    assert raised.value.code == sentence


def test_the_refusal_of_a_second_worker_names_the_remedy() -> None:
    """More calls at a time need more threads."""
    assert "one worker" in ONE_WORKER and "server.threads" in ONE_WORKER
