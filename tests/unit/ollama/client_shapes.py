"""What Ollama's clients read of a model and what they break on, each restated as a check.

A check takes documents as the client gets them and returns what the client makes of them; it raises
AssertionError or KeyError where the client would fail or hide the model.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
Json = dict[str, Any]


def typed(fields: Json, key: str, kind: type, optional: bool = False) -> Any:
    """The value of a key, which has that type exactly: true is no number."""
    if optional and fields.get(key) is None:
        return None
    assert type(fields[key]) is kind, (key, fields[key])
    return fields[key]


def texts(value: Any) -> list[str]:
    """A list of texts."""
    assert isinstance(value, list) and all(type(each) is str for each in value), value
    return value


def roo_tag(tag: Json) -> str:
    """Roo Code's zod schema of a listed model; one bad entry rejects the whole list."""
    details = tag["details"]
    for key in ("family", "parameter_size"):
        typed(details, key, str)
    for key in ("format", "parent_model", "quantization_level"):
        typed(details, key, str, optional=True)
    if details.get("families") is not None:
        texts(details["families"])
    for key in ("digest", "modified_at"):
        typed(tag, key, str, optional=True)
    typed(tag, "size", int, optional=True)
    typed(tag, "model", str)
    return str(typed(tag, "name", str))


def roo_show(show: Json) -> tuple[int | None, bool]:
    """Roo Code's context window, and whether it offers the model at all: only with tools."""
    for key in ("modelfile", "parameters", "template"):
        typed(show, key, str, optional=True)
    typed(show["details"], "family", str)
    typed(show["details"], "parameter_size", str)
    info = typed(show, "model_info", dict)
    sizes = [value for key, value in info.items() if "context_length" in key]
    window = sizes[0] if sizes and type(sizes[0]) is int else None
    return window, "tools" in texts(show["capabilities"])


def zed_tag(tag: Json) -> Json:
    """Zed's serde struct of a listed model: no text may be null or left out."""
    for key in ("name", "modified_at", "digest"):
        typed(tag, key, str)
    assert typed(tag, "size", int) >= 0
    for key in ("format", "family", "parameter_size", "quantization_level"):
        typed(tag["details"], key, str)
    return tag


def zed_show(show: Json) -> tuple[int | None, set[str]]:
    """Zed's context length and features; any failure fails the whole list."""
    info = typed(show, "model_info", dict)
    architecture = typed(info, "general.architecture", str, optional=True)
    context = typed(info, f"{architecture}.context_length", int, optional=True)
    return context, {"tools", "vision", "thinking"} & set(texts(show.get("capabilities", [])))


def ollama_kit_tag(tag: Json) -> bool:
    """OllamaKit's structs (Enchanted); whether the app takes the model for one that sees."""
    for key in ("name", "model", "digest"):
        typed(tag, key, str)
    typed(tag, "size", int)
    assert TIME.fullmatch(tag["modified_at"]), tag["modified_at"]
    details = tag["details"]
    for key in ("parent_model", "format"):
        typed(details, key, str)
    return bool({"clip", "mllama"} & set(details.get("families") or []))


def ollama_kit_show(show: Json) -> None:
    """OllamaKit's struct of a shown model: four texts that must be there."""
    for key in ("license", "modelfile", "parameters", "template"):
        typed(show, key, str)


def copilot(show: Json, name: str) -> tuple[str, int, bool, bool]:
    """GitHub Copilot Chat: the name it shows, the context it plans with, tools, vision."""
    info, capabilities = show["model_info"], show["capabilities"]
    architecture = info.get("general.architecture")
    context = info.get(f"{architecture}.context_length", 32768)
    assert type(context) is int and context > 0
    shown = info.get("general.basename") or show.get("remote_model") or name
    return shown, context, "tools" in capabilities, "vision" in capabilities


def open_webui(tags: list[Json]) -> dict[str, str]:
    """Open WebUI's models: label by id; an id without a tag would never be found again."""
    models = {typed(tag, "model", str): typed(tag, "name", str) for tag in tags}
    assert all(":" in name.rpartition("/")[2] for name in models)
    assert len(models) == len(tags)
    return models


def open_webui_running(running: Json) -> datetime:
    """When Open WebUI believes that a model goes, by ``datetime.fromisoformat``."""
    assert TIME.fullmatch(running["expires_at"])
    # Before Python 3.11, which is where it may run, Z is not known: it replaces that itself.
    return datetime.fromisoformat(running["expires_at"].replace("Z", "+00:00"))


def home_assistant(tag: Json, running: Json) -> None:
    """The models of ollama-python, which Home Assistant reads lists with every half minute."""
    for item, time in ((tag, "modified_at"), (running, "expires_at")):
        typed(item, "model", str)
        typed(item, "digest", str)
        assert typed(item, "size", int) > 0
        assert datetime.fromisoformat(item[time].replace("Z", "+00:00")).tzinfo
        for key in ("parent_model", "format", "family", "parameter_size", "quantization_level"):
            typed(item["details"], key, str)
        texts(item["details"]["families"])
    for key in ("size_vram", "context_length"):
        typed(running, key, int)


def llm_ollama(tags: list[Json], shows: list[Json]) -> dict[str, set[str]]:
    """llm-ollama's models: what it remembers on disk under each digest."""
    remembered: dict[str, set[str]] = {}
    for tag, show in zip(tags, shows):
        assert re.fullmatch("[0-9a-f]{64}", tag["digest"])
        remembered[tag["digest"]] = set(texts(show["capabilities"]))
        assert {"completion", "embedding"} & remembered[tag["digest"]]
    assert len(remembered) == len(tags), "two models share a digest and become one"
    return remembered


def continue_dev(show: Json) -> tuple[dict[str, str], bool]:
    """Continue's parameters by key, and whether it lets the model fill in text by ``suffix``."""
    lines = [line.split(None, 1) for line in show["parameters"].splitlines()]
    assert all(len(line) == 2 for line in lines)
    return dict(lines), ".Suffix" in show["template"]


def anything_llm(show: Json) -> tuple[bool, int | None]:
    """AnythingLLM: whether it is for embeddings, and its context; one failure empties the list."""
    found = [v for key, v in show["model_info"].items() if key.endswith(".context_length")]
    return "embedding" in show["capabilities"], found[0] if found else None


def page_assist(tag: Json) -> bool:
    """Whether Page Assist offers the model for chats."""
    return not {"bert", "nomic-bert"} & set(tag["details"]["families"])
