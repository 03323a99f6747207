"""Why models could not be brought in, changed or removed as asked.

    CatalogError        the message is a sentence for people, with the remedy
      BadName           nothing could be called that
      NotFound          a model, repository, quantisation or blob that is not there
      NameTaken         another model has the name, or lies where it would
      BadFile           no whole GGUF file
      WrongContent      the bytes are not those that were announced
      NoSpace           the disk is full, or would be
      CannotWrite       the registry cannot be written
      HubRefused        the hub gives it only to some
      HubUnavailable    the hub cannot be reached, or does not answer as it should
      Cancelled         whoever asked for it does not want it any more
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)


class CatalogError(Exception):
    """The registry is as it was, or holds what was asked for; it is never in between."""


class BadName(CatalogError):
    """Nothing could be called that."""


class NotFound(CatalogError):
    """A model, repository, quantisation or blob that is not there."""


class NameTaken(CatalogError):
    """Another model has the name, or lies where the new one would."""


class BadFile(CatalogError):
    """No whole GGUF file."""


class WrongContent(CatalogError):
    """The bytes are not those that were announced."""


class NoSpace(CatalogError):
    """The disk is full, or would be."""


class CannotWrite(CatalogError):
    """The registry cannot be written."""


class HubRefused(CatalogError):
    """The hub gives it only to some."""


class HubUnavailable(CatalogError):
    """The hub cannot be reached, or does not answer as it should.

    ``passing``: another try may succeed, by the hub's own word after ``wait`` seconds.
    """

    def __init__(self, message: str, passing: bool = False, wait: float | None = None) -> None:
        super().__init__(message)
        self.passing = passing
        self.wait = wait


class Cancelled(CatalogError):
    """Whoever asked for it does not want it any more."""

    def __init__(self) -> None:
        super().__init__("stopped: start it again and it goes on from there")


@contextmanager
def of_disk(home: Path) -> Iterator[None]:
    """Make an OSError a NoSpace or a CannotWrite that names the registry and the setting."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpace(f"the disk of {home} became full: make room, or set LOOP_LOOP_HOME to "
                          "a directory elsewhere, then start again") from error
        reason = error.strerror or str(error)
        raise CannotWrite(f"the registry {home} cannot be written ({reason}): set LOOP_LOOP_HOME "
                          "to a directory that can") from error


def shown(text: object) -> str:
    """A name or path as it can be put into a message: what cannot be printed is escaped."""
    found = str(text)
    return printable(found if len(found) <= 120 else found[:120] + "…")


def printable(text: str) -> str:
    """``text`` on one line that does nothing to a terminal: what cannot be printed is escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
