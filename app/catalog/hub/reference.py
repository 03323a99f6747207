"""What people write for a model on the hub, and what it means."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from app.catalog.problems import BadName, shown

MAIN = "main"
_HUBS = ("hf.co", "huggingface.co")
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")
_FOLDERS = ("blob", "resolve", "tree", "raw")  # in the addresses of a repository's pages
_NO_TAG = "latest"  # what Ollama's clients put where no tag was given


@dataclass(frozen=True)
class Reference:
    """A repository, a revision of it, and a quantisation or file name ("" for none) in it."""

    repo: str
    tag: str = ""
    revision: str = MAIN


def parse(text: str) -> Reference:
    """What ``ORG/REPO[:QUANT]`` means, also with the hub's name or as an address of the hub.

    An address of a file or a revision on the hub's pages means that file or revision. Raises
    BadName.
    """
    path, tag = _below_hub(text), ""
    if ":" in path.rpartition("/")[2]:
        path, _, tag = path.rpartition(":")
    org, _, rest = path.partition("/")
    repo, _, page = rest.rstrip("/").partition("/")
    if not all(_PART.fullmatch(part) and "--" not in part and ".." not in part
               for part in (org, repo)):
        raise _bad(text)
    revision, file = _page(page, text)
    if tag and file:
        raise _bad(text)
    return Reference(f"{org}/{repo}", file or ("" if tag.lower() == _NO_TAG else tag), revision)


def _below_hub(text: str) -> str:
    bare = re.sub(r"^https?://", "", text, flags=re.IGNORECASE)
    host, _, rest = bare.partition("/")
    if host.lower() in _HUBS:
        return rest.partition("?")[0].partition("#")[0]
    if bare != text:
        raise _bad(text)
    return text


def _page(page: str, text: str) -> tuple[str, str]:
    """The revision and the file that the rest of an address names."""
    if not page:
        return MAIN, ""
    folder, _, rest = page.partition("/")
    revision, _, file = rest.partition("/")
    if folder not in _FOLDERS or not revision:
        raise _bad(text)
    return unquote(revision), "" if folder == "tree" else unquote(file)


def _bad(text: str) -> BadName:
    return BadName(f"'{shown(text)}' names no model on the hub: write ORG/REPO or ORG/REPO:QUANT, "
                   "such as bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M")
