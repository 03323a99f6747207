"""Model names: those that are listed work on every route, in every spelling, through nginx too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from string import ascii_letters
from urllib.parse import quote

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import CHAT, HELLO, SHOW, get, ollama_error, openai_error, post
from tests.server.conftest import StartGateway, StartNginx
from tests.server.gateway_process import GatewayProcess

OLLAMA_NAMES = ["foo", "bar:1b", "org/x", "hf.co/a/b:Q4_K_M"]
ODD_NAMES = ["org/name:tag", "a b", "100%", "a%2Fb", "a+b", "a&b=c", "a?b", "a#b", "a;b",
             "ümlaut/北😀:ä", "UPPER/Case:Q8_0", "a~b_c-d.e", "models", "v1/models/x"]
NAMES = OLLAMA_NAMES + ODD_NAMES


@pytest.fixture(scope="module")
def direct(start_gateway: StartGateway,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway whose registry and engine have all these models."""
    home = RegistryHome(tmp_path_factory.mktemp("names") / "home")
    for number, name in enumerate(NAMES):
        directory = home.add(f"model-{number}")
        manifest = json.loads((directory / "manifest.json").read_bytes())
        home.write_manifest(directory, json.dumps({**manifest, "name": name}).encode())
    with RawEngine(reply()) as engine:
        yield start_gateway({"loop": {
            "home": str(home.path), "aliases": {"nick": "org/x"},
            "engines": [{"url": engine.url, "models": [n.replace("?", "[?]") for n in NAMES]}]}})


@pytest.fixture(scope="module")
def proxied(direct: GatewayProcess, start_nginx: StartNginx) -> str:
    """The same gateway behind an nginx with nothing but proxy_pass."""
    return start_nginx(f"location / {{ proxy_pass {direct.url}; }}").url


@pytest.fixture(params=["direct", pytest.param("nginx", marks=pytest.mark.nginx)])
def url(request: pytest.FixtureRequest, direct: GatewayProcess) -> str:
    """Both ways to the gateway."""
    return direct.url if request.param == "direct" else request.getfixturevalue("proxied")


SPELLINGS = {
    "plain": lambda name: quote(name, safe="/:"),
    "percent": lambda name: quote(name, safe=""),
    "lower": lambda name: "".join(
        chr(byte) if chr(byte) in ascii_letters else f"%{byte:02x}" for byte in name.encode()),
    "all": lambda name: "".join(f"%{byte:02X}" for byte in name.encode()),
}


def test_the_list_has_every_name_once(direct: GatewayProcess) -> None:
    """An id is the registry's name; names come sorted."""
    ids = [model["id"] for model in get(direct.url, "/v1/models").json()["data"]]
    assert ids == sorted(NAMES)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_listed_id_is_found_by_its_url(url: str, spelling: str) -> None:
    """Slashes, colons, spaces and percent signs, as they are or encoded."""
    for model in get(url, "/v1/models").json()["data"]:
        answer = get(url, f"/v1/models/{SPELLINGS[spelling](model['id'])}")
        assert answer.status == 200, model
        assert answer.header("Content-Type") == "application/json"
        assert answer.json() == model


def test_an_id_whose_slash_alone_is_encoded_is_found(url: str) -> None:
    """The spelling of the case reports."""
    assert get(url, "/v1/models/org%2Fname%3Atag").json()["id"] == "org/name:tag"
    assert get(url, "/v1/models/org%2fname:tag").json()["id"] == "org/name:tag"
    assert get(url, "/v1/models/a%20b").json()["id"] == "a b"


@pytest.mark.parametrize(("path", "name"), [
    ("nope", "nope"), ("org/name:other", "org/name:other"), ("org%2Fnope", "org/nope"),
    ("org", "org"), ("name:tag", "name:tag"), ("no%20pe", "no pe"), ("100", "100"),
    ("caf%C3%A9", "café"), ("..%2F..%2Fetc%2Fpasswd", "../../etc/passwd"),
    ("..%5C..%5Cetc", "..\\..\\etc"),
    ("model-0", "model-0"), ("model-0/manifest.json", "model-0/manifest.json")])
def test_an_unknown_id_is_named_in_a_404(url: str, path: str, name: str) -> None:
    """Not the 404 of an unknown URL; and nothing outside the registry's names is found."""
    answer = get(url, f"/v1/models/{path}")
    assert answer.status == 404
    assert openai_error(answer) == {
        "message": f"the model '{name}' does not exist", "type": "invalid_request_error",
        "param": "model", "code": "model_not_found"}


@pytest.mark.parametrize("path", ["caf%E9", "%00", "%ff%fe", "a%0d%0ab", "a%0ab", "%ED%A0%80"])
def test_an_id_that_is_no_text_is_a_4xx(direct: GatewayProcess, path: str) -> None:
    """Bytes that no name can have are a client's mistake."""
    answer = get(direct.url, f"/v1/models/{path}")
    assert 400 <= answer.status < 500 and openai_error(answer)


@pytest.mark.parametrize("path", ["/v1/models/../../etc/passwd", "/v1/models/%2Fetc%2Fpasswd",
                                  "/v1/models//etc/passwd", "/../etc/passwd", "/%2e%2e/etc/passwd"])
def test_no_path_leads_out_of_the_registry(direct: GatewayProcess, path: str) -> None:
    """A path that climbs is a 404 like any other unknown one."""
    answer = get(direct.url, path)
    assert answer.status == 404 and b"root:" not in answer.body
    assert answer.json()


def on_every_route(url: str, name: str) -> list[RawAnswer]:
    """The answers of show, model and chat to this name."""
    return [post(url, SHOW, {"model": name}), get(url, f"/v1/models/{quote(name, safe='')}"),
            post(url, CHAT, {**HELLO, "model": name})]


def listed_names(url: str) -> set[str]:
    """Every name under which /api/tags and /v1/models offer a model."""
    models = get(url, "/api/tags").json()["models"]
    offered = {model[field] for model in models for field in ("name", "model")}
    return offered | {model["id"] for model in get(url, "/v1/models").json()["data"]}


def test_every_listed_name_works_everywhere(direct: GatewayProcess) -> None:
    """What a list offers can be shown, retrieved and chatted with."""
    names = listed_names(direct.url)
    assert len(names) >= len(NAMES)
    for name in names:
        assert [answer.status for answer in on_every_route(direct.url, name)] == [200] * 3, name


def test_a_name_that_looks_like_a_glob_is_shown(direct: GatewayProcess) -> None:
    """A question mark in a name is a character of it."""
    assert post(direct.url, SHOW, {"model": "a?b"}).status == 200
    assert post(direct.url, SHOW, {"model": "a+?"}).status == 404


@pytest.mark.parametrize(("asked", "meant"), [
    ("foo", "foo"), ("foo:latest", "foo"), ("FOO", "foo"), ("Foo:Latest", "foo"),
    ("BAR:1B", "bar:1b"), ("org/x:latest", "org/x"), ("Org/X", "org/x"),
    ("HF.co/A/b:q4_k_m", "hf.co/a/b:Q4_K_M"), ("upper/case:q8_0", "UPPER/Case:Q8_0"),
    ("nick", "org/x")])
def test_one_rule_for_names_holds_on_all_routes(
        direct: GatewayProcess, asked: str, meant: str) -> None:
    """Case does not matter, no tag is `latest`, an alias is its model."""
    shown, model, chat = on_every_route(direct.url, asked)
    assert [shown.status, model.status, chat.status] == [200, 200, 200]
    assert model.json()["id"] == meant
    tag = meant.partition(":")[2]
    assert shown.json()["details"]["quantization_level"] in (tag, "")


@pytest.mark.parametrize("name", [
    "foo:1b", "bar", "bar:latest", "bar:1", "hf.co/a/b", "a/b:Q4_K_M", "x", "fo", "foo:", "*",
    "f*", "foo:latest:latest", "latest", "org/"])
def test_no_other_tag_or_part_is_guessed(direct: GatewayProcess, name: str) -> None:
    """A near name is no name: 404 in each API's words, with the name as it was asked for."""
    shown, model, chat = on_every_route(direct.url, name)
    assert [shown.status, model.status, chat.status] == [404, 404, 404]
    assert ollama_error(shown) == f"model '{name}' not found"
    for answer in (model, chat):
        assert openai_error(answer)["message"] == f"the model '{name}' does not exist"
        assert openai_error(answer)["code"] == "model_not_found"


def test_show_takes_the_old_field_too(direct: GatewayProcess) -> None:
    """`name` means `model` where there is no `model`."""
    assert post(direct.url, SHOW, {"name": "foo"}).status == 200
    assert post(direct.url, SHOW, {"model": "foo", "name": "nope"}).status == 200
    assert post(direct.url, SHOW, {"model": "nope", "name": "foo"}).status == 404


@pytest.mark.parametrize("body", [
    {"model": ""}, {"model": "  "}, {"name": ""}, {"model": None}, {"model": "", "name": ""}])
def test_show_without_a_name_is_a_400(
        direct: GatewayProcess, body: dict[str, str | None]) -> None:
    """A blank name is as good as none."""
    answer = post(direct.url, SHOW, body)
    assert (answer.status, ollama_error(answer)) == (400, "model is required")
