"""POST /api/pull where nothing can be pulled."""

from __future__ import annotations

import sys

import pytest
from flask.testing import FlaskClient

from tests.fakes.strict_json import strict_json


@pytest.mark.parametrize("stream", [True, False])
def test_the_extra_is_not_installed(
        client: FlaskClient, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    """It is said how it would be, with a status, before anything is streamed."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    answer = client.post("/api/pull", json={"model": "hf.co/org/m", "stream": stream})
    assert (answer.status_code, answer.content_type) == (501, "application/json")
    assert "pip install 'loop-gateway[pull]'" in strict_json(answer.data)["error"]
