"""Which gateway this is."""

import platform

from app import __version__


def version() -> str:
    """The release."""
    return __version__


def python() -> str:
    """The Python that runs it."""
    return platform.python_version()
