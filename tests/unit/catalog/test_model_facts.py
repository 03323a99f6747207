"""What is known of a model, from its manifest, its files and its engine."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from app.catalog.model_facts import ModelFacts
from app.engine_facts import OPENAI, EngineFacts
from tests.fakes.gguf_writer import LITTLE, Type, gguf
from tests.fakes.model_files import KINDS, facts_of, part, projector, pulled, weights
from tests.fakes.registry_home import RegistryHome

SHA = "5239405616616846448e0fd1b11e1807bc5693a20f9f04e8fd57853254b1e7b7"


def with_sha(home: RegistryHome, sha256: Any, name: str = "m:Q4", **changes: Any) -> ModelFacts:
    """A model whose manifest says this of its one file."""
    file = {"path": "model.gguf", "size": 9, "sha256": sha256}
    return pulled(home, {"model.gguf": weights()}, name, files=[file], **changes)


@pytest.mark.parametrize("sha256", [SHA, SHA.upper()])
def test_the_digest_is_that_of_the_first_file(registry_home: RegistryHome, sha256: str) -> None:
    """As the manifest has it, in small letters."""
    assert with_sha(registry_home, sha256).digest == SHA


@pytest.mark.parametrize("sha256", [None, "", "abc123", SHA[:-1], SHA + "0", "x" * 64, 5])
def test_a_digest_is_made_where_there_is_none(registry_home: RegistryHome, sha256: Any) -> None:
    """64 hex digits, the same each time, and another for every other model."""
    first = with_sha(registry_home, sha256, "m:Q4").digest
    other = with_sha(registry_home, sha256, "n:Q4").digest
    registry_home.remove("m:Q4")
    again = with_sha(registry_home, sha256, "M:q4", quant="Q4").digest
    assert len(first) == 64 and set(first) <= set("0123456789abcdef")
    assert again == first != other


def test_a_made_digest_changes_with_what_the_model_can_do(registry_home: RegistryHome) -> None:
    """Clients remember capabilities by it."""
    files = [{"path": "model.gguf", "size": 9}]
    digests = set()
    for template in ("", "tools", "<think></think>"):
        digests.add(pulled(registry_home, {"model.gguf": weights(template=template)}, "m:Q4",
                           files=files).digest)
        registry_home.remove("m:Q4")
    assert len(digests) == 3


SEES, HEARS, BOTH = projector(vision=True), projector(audio=True), projector(
    vision=True, audio=True)


@pytest.mark.parametrize("told", [True, False])
def test_the_digest_changes_with_the_projector(registry_home: RegistryHome, told: bool) -> None:
    """With whatever is in it, also where the manifest has no SHA-256; not with other files."""
    files = [{}, {"mmproj-F16.gguf": SEES}, {"mmproj-F16.gguf": HEARS}, {"mmproj-F16.gguf": BOTH},
             {"mmproj-F16.gguf": SEES + b"other weights"}, {"README.md": b"x"},
             {"mmproj-F16.gguf": b"no model"}]
    digests = []
    for more in files:
        data = {"model.gguf": weights("gemma3"), **more}
        listed = [{"path": path, "size": len(data[path])} for path in data]
        digests.append(pulled(registry_home, data, "m:Q4",
                              **({} if told else {"files": listed})).digest)
        again = facts_of(registry_home, "m:Q4").digest
        assert again == digests[-1] and len(again) == 64
        registry_home.remove("m:Q4")
    alone = digests[0]
    assert len({alone, *digests[1:5]}) == 5
    assert not told or (alone == digests[5] == digests[6]
                        == hashlib.sha256(weights("gemma3")).hexdigest())


@pytest.mark.parametrize(("kind", "parameters", "size"), [
    ("normal", 7_000_000, "7M"), ("split", 3_000_000, "3M"), ("vision", 7_000_000, "7M"),
    ("without_metadata", 0, ""), ("no_model_file", 0, "")])
def test_parameters_are_counted(
        registry_home: RegistryHome, kind: str, parameters: int, size: str) -> None:
    """Over all parts, and without the projector."""
    model = pulled(registry_home, kind)
    assert (model.parameters, model.parameter_size) == (parameters, size)


LABEL = ("general.size_label", Type.STRING, "9B")
COUNT = ("general.parameter_count", Type.UINT64, 8_030_261_312)


@pytest.mark.parametrize(("data", "size"), [
    (gguf([LABEL, COUNT], tensors=[LITTLE.tensor("t", 1500)]), "2K"),
    (gguf([LABEL, COUNT]), "8.0B"), (gguf([LABEL]), "9B"), (gguf([]), ""),
    (LITTLE.header(1, tensors=1) + LITTLE.pair(*LABEL) + b"cut", "9B"),
    (LITTLE.header(1, tensors=1) + LITTLE.pair(*LABEL) + LITTLE.number("Q", 2**63) * 3, "9B"),
], ids=["counted", "told", "label", "nothing", "cut", "broken_list"])
def test_what_cannot_be_counted_is_what_the_file_says(
        registry_home: RegistryHome, data: bytes, size: str) -> None:
    """The count of the tensors first, then the file's own number, then its label."""
    assert pulled(registry_home, {"model.gguf": data}).parameter_size == size


@pytest.mark.parametrize("missing", ["gone", "broken", "not_listed"])
def test_half_a_split_model_is_not_counted(registry_home: RegistryHome, missing: str) -> None:
    """A part of the sum would be a wrong one."""
    files = {f"x-0000{n}-of-00003.gguf": part(n, 3, 1000) for n in (1, 2, 3)}
    if missing == "broken":
        files["x-00002-of-00003.gguf"] = b"GGUF"
    if missing == "not_listed":
        del files["x-00002-of-00003.gguf"]
    listed = [{"path": path, "size": 1} for path in files]
    directory = registry_home.add_files("x:Q4", files, files=listed)
    if missing == "gone":
        (directory / "x-00002-of-00003.gguf").unlink()
    assert facts_of(registry_home, "x:Q4").parameters == 0


@pytest.mark.parametrize(("quant", "file_type", "engine", "level"), [
    ("Q8_0", 15, "Q4_K - Medium", "Q8_0"), ("", 15, "Q6_K", "Q4_K_M"), ("", 0, "", "F32"),
    ("", 99, "Q6_K", "unknown"), ("", None, "Q4_K - Medium", "Q4_K_M"), ("", None, "", "")])
def test_the_quantisation_is_found(registry_home: RegistryHome, quant: str, file_type: int | None,
                                   engine: str, level: str) -> None:
    """In the manifest, else in the file, else with the engine; else nobody guesses."""
    pairs = [] if file_type is None else [("general.file_type", Type.UINT32, file_type)]
    model = pulled(registry_home, {"model.gguf": gguf(pairs)}, quant=quant)
    assert model.quantization(EngineFacts("llama-server", 4096, ftype=engine)) == level


@pytest.mark.parametrize(("slot", "context"), [(2048, 2048), (4096, 4096), (9999, 4096), (0, 4096)])
def test_the_context_is_what_a_call_may_use(
        registry_home: RegistryHome, slot: int, context: int) -> None:
    """The engine's share for one call, and never more than the model was trained for."""
    model = pulled(registry_home, "normal")
    assert model.context_length(EngineFacts("llama-server", slot)) == context
    assert model.context_length(OPENAI) == model.context_length() == 4096


def test_the_context_may_be_known_from_the_engine_alone(registry_home: RegistryHome) -> None:
    """Where the file says nothing, or cannot be read."""
    model = pulled(registry_home, "no_model_file")
    assert model.context_length() == 0
    assert model.context_length(EngineFacts("llama-server", 512)) == 512


@pytest.mark.parametrize(("kind", "families"), [
    ("normal", ["llama"]), ("vision", ["gemma3", "clip"]), ("without_metadata", ["unknown"])])
def test_the_families_tell_of_a_projector(
        registry_home: RegistryHome, kind: str, families: list[str]) -> None:
    """By the word that clients look for."""
    assert pulled(registry_home, kind).families == families


@pytest.mark.parametrize(("file", "data"), [
    ("mmproj.gguf", b"GGUF"), ("mmproj.gguf", weights()), ("other.gguf", projector(vision=True))])
def test_only_a_projector_is_one(registry_home: RegistryHome, file: str, data: bytes) -> None:
    """What is broken, is no projector, or is not named as one does not see."""
    model = pulled(registry_home, {"model.gguf": weights(), file: data})
    assert (model.projector, model.capabilities()) == (None, ("completion",))


def test_the_template_is_the_one_that_is_applied(registry_home: RegistryHome) -> None:
    """The engine's, where it says so, else the file's."""
    model = pulled(registry_home, "normal")
    assert model.template() == model.file.template != ""
    assert model.template(EngineFacts("llama-server", 1, chat_template="other")) == "other"
    assert model.template(EngineFacts("llama-server", 1)) == model.file.template


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_model_is_everything_is_known(registry_home: RegistryHome, kind: str) -> None:
    """As a value of its type; a split model has the digest of its first part."""
    model = pulled(registry_home, kind)
    first = next(iter(KINDS[kind].values()))
    assert (model.digest == hashlib.sha256(first).hexdigest()) is (model.projector is None)
    assert model.name == "org/m:Q4_K_M"
    assert model.quantization() == "Q4_K_M"
    assert model.capabilities() and all(model.families)
