"""The model that a request means: its engine's facts and what it can do."""

from dataclasses import dataclass, replace
from typing import Any

from app.api.http import call_of, services
from app.api.ollama.modelfile import NOTHING, Modelfile
from app.api.ollama.refusal import Refusal, invalid, quoted
from app.api.ollama.request.fields import text
from app.api.payload import OpaqueBody
from app.api.place import keep
from app.api.recording import record
from app.api.security import permit
from app.catalog.capabilities import COMPLETION, INSERT, THINKING, TOOLS
from app.engine_facts import OPENAI, EngineFacts


@dataclass(frozen=True)
class Target:
    """A model by the name it was asked for, and by the name that its engine knows.

    ``capabilities`` is None where neither the registry nor the engine tells: then everything is
    tried, and the engine says what it cannot do.
    """

    asked: str
    name: str
    facts: EngineFacts
    capabilities: tuple[str, ...] | None
    modelfile: Modelfile = NOTHING

    def can(self, capability: str) -> bool:
        """Whether the model has the capability, as far as anyone knows."""
        return self.capabilities is None or capability in self.capabilities

    def require_chat(self, fields: dict[str, Any]) -> None:
        """Raise Refusal where the model cannot do what a chat request wants of it."""
        self._require_completion("chat")
        if fields.get("tools") and not self.can(TOOLS):
            raise invalid(f"{quoted(self.asked)} does not support tools")

    def require_generate(self, fields: dict[str, Any]) -> None:
        """Raise Refusal where the model cannot do what a generate request wants of it."""
        self._require_completion("generate")
        plain = not fields.get("template")
        if fields.get("suffix") and plain and not self.can(INSERT):
            raise invalid(f"{quoted(self.asked)} does not support insert")

    @property
    def thinks(self) -> bool:
        """Whether it can think before it answers, as far as anyone knows."""
        return self.can(THINKING)

    def _require_completion(self, what: str) -> None:
        if not self.can(COMPLETION):
            raise invalid(f"{quoted(self.asked)} does not support {what}")


def target_of(fields: dict[str, Any], empty: Refusal) -> Target:
    """The model that ``fields`` name, which the request uses to its end; ``empty`` for no name.

    It may be several calls: whoever deletes the model waits for the last. Raises GatewayError where
    there is no such model, or the caller may not use it.
    """
    asked = text(fields.get("model"), "model")
    if not asked.strip():
        raise empty
    gateway = services().gateway
    permit(asked, gateway)
    name = gateway.served(asked)
    keep(gateway.runs.of(name, record()))
    facts = gateway.engine_facts(name)
    entry = services().registry.find(name)
    added = Modelfile.of(entry.modelfile) if entry and entry.modelfile else NOTHING
    return Target(asked, name, facts or OPENAI, _capabilities(name, facts), added)


def ready(target: Target) -> Target:
    """The target once its engine runs, with what the engine says then.

    Blocks while an engine has to be started for it; raises GatewayError.
    """
    gateway = services().gateway
    if gateway.is_loaded(target.name):
        return target
    gateway.prepare(call_of(OpaqueBody(), model=target.name))
    facts = gateway.engine_facts(target.name)
    return replace(target, facts=facts or OPENAI, capabilities=_capabilities(target.name, facts))


def _capabilities(name: str, facts: EngineFacts | None) -> tuple[str, ...] | None:
    entry = services().registry.find(name)
    if entry is not None and (facts is None or facts.is_llama_server):
        return services().facts.of_model(entry).capabilities(facts)
    return None
