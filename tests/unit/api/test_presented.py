"""Where in a request its key is looked for."""

from __future__ import annotations

import pytest

from app.api.security.presented import presented_key
from app.errors import GatewayError, Kind

AUTH, X_API, API = "HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY"
FOUND: list[tuple[dict[str, str], bytes]] = [
    ({AUTH: "Bearer k"}, b"k"), ({AUTH: "bearer k"}, b"k"), ({AUTH: "BEARER  k "}, b"k"),
    ({X_API: "k"}, b"k"), ({API: "k"}, b"k"), ({X_API: " k\t"}, b"k"),
    ({AUTH: "Bearer k", X_API: "k", API: "k"}, b"k"),
    ({AUTH: "Bearer ", X_API: "k"}, b"k"), ({AUTH: "", API: "k", X_API: ""}, b"k"),
    ({AUTH: "Basic dTpw", X_API: "k"}, b"k"),
    ({AUTH: "Bearer a b"}, b"a b"), ({AUTH: "Bearer a,b"}, b"a,b"),
    ({AUTH: "Bearer \xe9"}, b"\xe9"),
    ({X_API: "caf\xc3\xa9"}, "café".encode()), ({AUTH: "Bearer " + "x" * 100_000}, b"x" * 100_000),
]
NONE: list[dict[str, str]] = [
    {}, {AUTH: ""}, {AUTH: "Bearer"}, {AUTH: "Bearer "}, {AUTH: "Basic dTpw"}, {AUTH: "k"},
    {AUTH: "Bearerk"}, {AUTH: "Token k"}, {X_API: ""}, {API: " "}, {"HTTP_COOKIE": "api-key=k"},
    {"QUERY_STRING": "api-key=k&key=k&api_key=k&access_token=k"}, {"HTTP_PROXY_AUTHORIZATION": "k"},
    {"HTTP_X_GOOG_API_KEY": "k"}, {"HTTP_AUTHORIZATION_": "Bearer k"},
]
SEVERAL: list[dict[str, str]] = [
    {AUTH: "Bearer k", X_API: "l"}, {AUTH: "Bearer k", API: "K"}, {X_API: "k", API: "l"},
    {AUTH: "Bearer k", X_API: "k", API: "l"},
]


@pytest.mark.parametrize(("environ", "key"), FOUND)
def test_a_key_is_found(environ: dict[str, str], key: bytes) -> None:
    """In one of three headers, or the same in several; as the bytes that were sent."""
    assert presented_key(environ) == key


@pytest.mark.parametrize(("environ", "said"), [
    *[(each, "wants an API key") for each in NONE],
    *[(each, "several different") for each in SEVERAL]])
def test_no_key_and_several_are_refused(environ: dict[str, str], said: str) -> None:
    """Nothing else is a key: no cookie, nothing of the URL, no other scheme."""
    with pytest.raises(GatewayError, match=said) as raised:
        presented_key(environ)
    assert raised.value.kind is Kind.UNAUTHORIZED
