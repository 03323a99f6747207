"""The built-in engine sees with a projector beside the model, or says why it cannot."""

from __future__ import annotations

import base64
import shutil
import socket
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.engine.engine_process import EngineProcess
from tests.fakes.projector_file import PICTURE_TOKENS, llava_projector
from tests.server.calls import CHAT, get, post

pytestmark = pytest.mark.engine
WIDTH = 576  # of the demo model's tokens


def picture() -> str:
    """A red picture as a URL."""
    file = BytesIO()
    Image.new("RGB", (64, 64), "red").save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def prompt_tokens(url: str, *parts: dict[str, Any]) -> int:
    """How many tokens the engine makes of a message of these parts."""
    content = [{"type": "text", "text": "What is it?"}, *parts]
    answer = post(url, CHAT, {"model": "a", "messages": [{"role": "user", "content": content}],
                              "max_tokens": 1})
    assert answer.status == 200, answer.body
    return int(answer.json()["usage"]["prompt_tokens"])


def arguments(model: Path, projector: Path) -> list[str]:
    """Of an engine that has both."""
    return ["--model", str(model), "--mmproj", str(projector), "--alias", "a", "--port", "0"]


def test_it_sees_pictures(demo_model: Path, tmp_path: Path) -> None:
    """It says that it does, and a picture in a chat is read."""
    projector = tmp_path / "mmproj.gguf"
    projector.write_bytes(llava_projector(WIDTH))
    with EngineProcess(*arguments(demo_model, projector)) as engine:
        engine.wait_until_up()
        assert get(engine.url, "/props").json()["modalities"]["vision"] is True
        seen = {"type": "image_url", "image_url": {"url": picture()}}
        more = prompt_tokens(engine.url, seen) - prompt_tokens(engine.url)
        assert PICTURE_TOKENS <= more < 2 * PICTURE_TOKENS


def test_an_empty_name_means_none(demo_model: Path) -> None:
    """As a command says of a model that has no projector; so what is wrong is the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["--model", str(demo_model), "--mmproj", "", "--alias", "a", "--port", str(port)]
        with EngineProcess(*command) as engine:
            assert engine.code() == 1
            assert engine.output().startswith(f"builtin engine: port {port} on 127.0.0.1 is in use")


def scribbled(_model: Path, projector: Path) -> None:
    """Make a projector that is none."""
    projector.write_text("once upon a time")


def cut(_model: Path, projector: Path) -> None:
    """Make a projector that lacks its last numbers."""
    projector.write_bytes(llava_projector(WIDTH)[:-100_000])


@pytest.mark.parametrize(("make", "said"), [
    (lambda *_: None, "there is no file {projector}; name a .gguf file with --mmproj"),
    (scribbled, "{projector} is no usable projector (not a GGUF file); pull it again"),
    (shutil.copy, "{projector} is no projector; name one with --mmproj, or leave it out"),
    (cut, "llama.cpp cannot load {model} with {projector}; the lines above say why."),
])
def test_a_bad_projector_is_told(
        demo_model: Path, tmp_path: Path, make: Callable[[Path, Path], None], said: str) -> None:
    """It ends with exit code 1 and a sentence, the last line."""
    projector = tmp_path / "mmproj.gguf"
    make(demo_model, projector)
    with EngineProcess(*arguments(demo_model, projector)) as engine:
        assert engine.code() == 1
        last = engine.output().splitlines()[-1]
        told = said.format(model=demo_model, projector=projector)
        assert last.startswith("builtin engine: " + told)
        assert "Traceback" not in engine.output()
