"""The names of models that requests bring, make, copy or remove."""

from typing import Any

from app.api.http import services
from app.api.ollama.refusal import Refusal, invalid
from app.api.ollama.request.fields import text
from app.api.security import permit
from app.catalog.names import normal, require_usable, tagged
from app.catalog.problems import BadName


def asked(fields: dict[str, Any], empty: Refusal) -> str:
    """The name in ``model``, or in ``name`` as it was called before; raises ``empty`` for none."""
    name = text(fields.get("model"), "model") or text(fields.get("name"), "name")
    if not name.strip():
        raise empty
    return name


def for_new(name: str, refused: str) -> str:
    """The name that a new model has where a client calls it ``name``: always with a tag.

    Where it takes the place of a model that is called so, it is spelled as that one.
    Raises Refusal, whose text begins with ``refused``, where none can have it, and GatewayError
    where the caller may not use models of that name.
    """
    gateway = services().gateway
    found = tagged(name)
    try:
        require_usable(found)
    except BadName as error:
        raise invalid(f"{refused}: {error}") from error
    permit(found, gateway)
    if normal(gateway.unaliased(name)) != normal(name):
        raise invalid(f"{refused}: it is another name of a model")
    before = services().registry.find(found)
    return before.name if before else found
