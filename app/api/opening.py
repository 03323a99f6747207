"""What tells a conversation from others: its opening, which stays the same while it goes on.

Pure. Where the fields come from: OpenAI's chats and Responses, Anthropic's Messages.
"""

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

_OF_SYSTEM = ("system", "developer")
_VOLATILE = "x-anthropic-"  # Claude Code's block with a checksum of each request; engines drop it


def opening(path: str, fields: dict[str, Any]) -> str | None:
    """What the body of a request to that path begins with, as a text; None where nothing is known.

    1. Of messages those up to the first that is no system message, and ``system``.
    2. Of /responses ``instructions``, and the items of ``input`` likewise; a text is a message. Of
       one that goes on after another response nothing is known.
    3. Other bodies have none: where the beginning of a prompt ends cannot be seen.
    """
    if path.endswith("/responses"):
        continued = fields.get("previous_response_id") is not None
        said = None if continued else _items(fields.get("input"))
        system = fields.get("instructions")
    else:
        said, system = fields.get("messages"), _lasting(fields.get("system"))
    if not isinstance(said, list) or not said:
        return None
    return json.dumps([fields.get("model"), system, _beginning(said)], sort_keys=True)


def _items(given: Any) -> Any:
    return [{"role": "user", "content": given}] if isinstance(given, str) and given else given


def _lasting(system: Any) -> Any:
    if not isinstance(system, list):
        return system
    return [each for each in system if not _is_volatile(each)]


def _is_volatile(block: Any) -> bool:
    return isinstance(block, dict) and str(block.get("text", "")).startswith(_VOLATILE)


def _beginning(messages: Sequence[Any]) -> Sequence[Any]:
    return messages[:len(list(takewhile(_is_of_system, messages))) + 1]


def _is_of_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in _OF_SYSTEM
