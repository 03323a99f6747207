"""How model names compare, and which ones a model can have.

They compare without regard to case, and a name without a tag has the tag latest.
"""

from app.catalog.problems import BadName, shown

_DEFAULT_TAG = "latest"
_LONGEST = 200  # bytes of a directory's name; file systems allow 255


def tagged(name: str) -> str:
    """The name with its tag, in its own spelling: ``foo`` → ``foo:latest``, ``foo:1b`` as it is."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:{_DEFAULT_TAG}"


def normal(name: str) -> str:
    """The one form that all spellings of a name share."""
    return tagged(name).lower()


def directory_of(name: str) -> str:
    """What the directory of a model is called."""
    return name.replace("/", "--").replace(":", "--")


def require_usable(name: str) -> str:
    """The name, if a new model can have it; raises BadName with the rule that it breaks.

    So its directory is one right below HOME/models, and every client can ask for it.
    """
    rule = _broken_rule(name)
    if rule:
        raise BadName(f"a model cannot be called '{shown(name)}': {rule}")
    return name


def _broken_rule(name: str) -> str | None:
    *path, last = name.split("/")
    if not name.strip():
        return "it has no characters"
    if not name.isprintable() or name != name.strip():
        return "it has characters that cannot be seen"
    if len(directory_of(name).encode()) > _LONGEST:
        return f"it is longer than {_LONGEST} bytes"
    if any(not part or part.startswith(".") for part in (*path, *last.split(":"))):
        return "a part of it is empty or begins with a dot"
    if last.count(":") > 1:
        return "it has more than one tag"
    return None
