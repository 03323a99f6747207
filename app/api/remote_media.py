"""Pictures, sound and films that a request only points at: engines would fetch them by themselves.

An engine stands where its clients do not, so a URL of theirs could read what only it can reach.
Where such URLs stand: OpenAI's API reference (chat, responses), Anthropic's (messages), and what
llama-server and vLLM read beside them.
"""

import re
from typing import Any

from app.errors import GatewayError, Kind

Path = tuple[str | int, ...]

# Fields of a content part that hold a URL, or an object that has it as one of _URLS.
_MEDIA = {
    "image_url", "audio_url", "video_url", "file_url", "input_image", "input_audio", "input_video",
    "image", "images", "audio", "video", "file", "multimodal_data",
}
_URLS = ("url", "image_url", "file_url", "file_data", "data")
_SOURCE_URLS = ("url",)  # its data may be plain text
# Fields below which content parts may be. Not "input" further down: there it is a tool's.
_BELOW = {
    "messages", "content", "source", "output", "documents", "queries", "query", "requests",
    "params",
}
_AT_TOP = _BELOW | {"input", "system", "prompt"}
_KINDS = ("image", "audio", "video", "input_", "document", "file")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_IGNORED = "".join(map(chr, range(33)))  # what readers of URLs take off their beginning
_DATA = "data:"
_MAY_BE_URL = _MEDIA.union(_URLS)
_MAY_LEAD_TO_URL = _MEDIA | _AT_TOP
_CONTAINERS = frozenset((dict, list))


def refuse_remote_media(fields: dict[str, Any]) -> None:
    """Raise GatewayError where a part of the body points at media that are not in the body."""
    path = remote_media(fields) if _may_point(fields) else None
    if path is None:
        return
    where = _written(path)
    text = (
        f"'{where}' must hold its data itself, as a data: URL: the engine would fetch it from "
        "elsewhere, which takes server.allow-remote-media: true"
    )
    raise GatewayError(Kind.INVALID_FIELD, text, param=where)


def remote_media(fields: dict[str, Any]) -> Path | None:
    """The path of a URL that is no data: URL, None without one."""
    waiting: list[tuple[Path, Any]] = [((), fields)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            found = _in_part(path, node)
            if found is not None:
                return found
            below = _BELOW if path else _AT_TOP
            waiting += [((*path, key), node[key]) for key in below & node.keys()]
        elif isinstance(node, list):
            waiting += [((*path, i), each) for i, each in enumerate(node)]
    return None


def _may_point(fields: dict[str, Any]) -> bool:
    """Whether ``remote_media`` may find something: as that, in a tenth of its time, but too often.

    0.2 µs per message, however long its text is.
    """
    waiting: list[Any] = [fields]
    while waiting:
        node = waiting.pop()
        if type(node) is dict:
            for key, value in node.items():
                if type(value) is str:
                    if key in _MAY_BE_URL and is_remote(value):
                        return True
                elif key in _MAY_LEAD_TO_URL and type(value) in _CONTAINERS:
                    if key in _MEDIA and type(value) is list:
                        return True
                    waiting.append(value)
        elif not _CONTAINERS.isdisjoint(map(type, node)):
            waiting += [each for each in node if type(each) in _CONTAINERS]
    return False


def _in_part(path: Path, part: dict[str, Any]) -> Path | None:
    """The path of a remote URL in the fields of one part."""
    for key in _MEDIA & part.keys():
        found = _remote((*path, key), part[key], _URLS)
        if found is not None:
            return found
    if "source" in part and isinstance(part["source"], dict):
        return _remote((*path, "source"), part["source"], _SOURCE_URLS)
    if "url" in part and _is_media(part) and is_remote(part["url"]):
        return (*path, "url")
    return None


def is_remote(value: Any) -> bool:
    """Whether a text is a URL of any scheme but data: as lenient readers see it."""
    if not isinstance(value, str) or value[:5].lower() == _DATA:
        return False
    start = value.lstrip(_IGNORED)[:256]
    scheme = _SCHEME.match(re.sub("[\t\r\n]", "", start))
    return scheme is not None and scheme[0].lower() != _DATA


def _remote(path: Path, value: Any, names: tuple[str, ...]) -> Path | None:
    """The path of a remote URL in a field of media: the value, or a member of one of the names."""
    if isinstance(value, dict):
        return next(((*path, name) for name in names if is_remote(value.get(name))), None)
    if isinstance(value, list):
        each = (_remote((*path, i), item, names) for i, item in enumerate(value))
        return next((found for found in each if found is not None), None)
    return path if is_remote(value) else None


def _is_media(node: dict[str, Any]) -> bool:
    kind = node.get("type")
    return isinstance(kind, str) and kind.startswith(_KINDS)


def _written(path: Path) -> str:
    """A path as errors tell it: messages[0].content[1].image_url.url."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")
