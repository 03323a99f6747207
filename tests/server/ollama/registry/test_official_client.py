"""What Ollama's own client does with models: pull, show, copy, create, upload and delete."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ollama import Client, ResponseError

from tests.fakes.hub import FakeHub, Fault
from tests.fakes.raw_engine import RawEngine
from tests.fakes.whole_gguf import LARGE, SMALL
from tests.server.ollama.asking import asked
from tests.server.ollama.registry.asking import Registered

NAME = "hf.co/org/m:Q8_0"


def test_a_model_comes_and_goes(hub: FakeHub, served: Registered, engine: RawEngine,
                                client: Client) -> None:
    """From the hub, under a second name, with a system text, and away again."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    events = list(client.pull(NAME, stream=True))
    assert (events[0].status, events[-1].status) == ("pulling manifest", "success")
    assert max(event.completed or 0 for event in events) == len(LARGE)
    assert client.pull(NAME).status == "success"
    shown = client.show(NAME)
    assert shown.details and shown.details.quantization_level == "Q8_0"
    assert client.copy(NAME, "mine").status == "success"
    made = list(client.create("pirate", from_="mine", system="Be a pirate.",
                              parameters={"temperature": 0.5}, stream=True))
    assert made[-1].status == "success"
    client.chat("pirate", [{"role": "user", "content": "hi"}])
    assert asked(engine)[0]["messages"][0] == {"role": "system", "content": "Be a pirate."}
    listed = [model.model for model in client.list().models]
    assert listed == [NAME, "mine:latest", "pirate:latest"]
    for name in listed:
        assert name and client.delete(name).status == "success"
    assert client.list().models == [] and served.blobs() == set()


def test_a_model_of_a_file(served: Registered, client: Client, tmp_path: Path) -> None:
    """That is uploaded first."""
    file = tmp_path / "m.gguf"
    file.write_bytes(SMALL)
    digest = client.create_blob(file)
    assert digest == f"sha256:{hashlib.sha256(SMALL).hexdigest()}"
    assert client.create("mine", files={"m.gguf": digest}).status == "success"
    assert served.entry("mine").first_file.read_bytes() == SMALL


def test_errors_are_the_clients_own(hub: FakeHub, served: Registered, client: Client) -> None:
    """With the status and the text; -1 is an error within a stream."""
    hub.faults = [Fault("api", status=429, headers={"Retry-After": "999"}) for _ in range(2)]
    with pytest.raises(ResponseError, match="answers 429: try again in 999 s") as caught:
        client.pull("org/m")
    assert caught.value.status_code == 503
    with pytest.raises(ResponseError, match="answers 429") as caught:
        list(client.pull("org/m", stream=True))
    assert caught.value.status_code == -1
    for act in (client.delete, client.show):
        with pytest.raises(ResponseError, match="model 'nope' not found") as caught:
            act("nope")
        assert caught.value.status_code == 404
    with pytest.raises(ResponseError, match="not quantized here"):
        client.create("x", from_="nope", quantize="Q4_0")
    with pytest.raises(ResponseError, match="not pushed from here"):
        client.push("nope")
