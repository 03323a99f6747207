"""What the tests of requests share: two makes of engine, and how a refusal is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.api.ollama.refusal import Refusal
from app.engine_facts import OPENAI, EngineFacts

LLAMA = EngineFacts(kind="llama-server", slot_context=4096, media_marker="<m>")
NO_CONTEXT = EngineFacts(kind="llama-server")
OTHER = OPENAI
PNG = "iVBORw0KGgo="  # the first bytes of a PNG file
JPEG = "/9j/4AAQ"
WAV = "UklGRgAAAABXQVZF"


def refusal(function: Callable[..., Any], *arguments: Any) -> str:
    """The text that the call is refused with, always with status 400."""
    with pytest.raises(Refusal) as raised:
        function(*arguments)
    assert raised.value.status == 400
    return raised.value.text
