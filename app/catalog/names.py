"""How model names compare: without regard to case, and a name without a tag has the tag latest."""

_DEFAULT_TAG = "latest"


def tagged(name: str) -> str:
    """The name with its tag, in its own spelling: ``foo`` → ``foo:latest``, ``foo:1b`` as it is."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:{_DEFAULT_TAG}"


def normal(name: str) -> str:
    """The one form that all spellings of a name share."""
    return tagged(name).lower()
