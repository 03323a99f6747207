"""Which gateway this is."""

import platform
from importlib import metadata


def version() -> str:
    """The release; "unknown" where the gateway runs without being installed."""
    try:
        return metadata.version("loop-gateway")
    except metadata.PackageNotFoundError:
        return "unknown"


def python() -> str:
    """The Python that runs it."""
    return platform.python_version()
