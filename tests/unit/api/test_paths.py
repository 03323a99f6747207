"""What a path may mean to whoever reads it next."""

from __future__ import annotations

import pytest

from app.api.paths import folded, merged, raw_target, refuse_dots
from app.errors import GatewayError

DOTS = [
    "/v1/../slots/0", "/v1/./x", "/v1/..", "/v1/.", "/..", "/v1/x/../../slots", "/v1/../",
    "/v1/%2e%2e/x", "/v1/%2E./x", "/v1/.%2e/x", "/v1/%2e/x", "/v1/..%2fx", "/v1/x%2f..%2fy",
    "/v1%2F..%2Fx", "/v1/..%5cx", "/v1\\..\\slots", "/v1/..\\x", "/v1/x%5C..%5Cy",
    "/v1/%252e%252e/x", "/v1/%25252e./x", "/v1/..%252fx", "/v1/%2%65%2e/x", "/v1/..%255cx",
    "/v1/..;/x", "/v1/..;a=b/x", "/v1/.;/x", "/v1/%2e%2e%3b/x", "/v1/..%00/x", "/v1/..%00.txt",
    "/v1/..%20/x", "/v1/%20../x", "/v1/..%09", "/v1/..%3fx", "/v1/..%23", "/v1//../x",
    "/v1/%c0%ae%c0%ae/x", "/v1/..%c0%afx", "/upstream/m/../x", "/upstream/m/%2e%2e%2fx",
    "/slots/../props", "/v1/a..;/..;/x",
]
PLAIN = [
    "/", "/v1/chat/completions", "/v1/a.b", "/v1/.a", "/v1/a.", "/v1/...", "/v1/..a", "/v1/a..",
    "/upstream/org/name-1.5:Q4_K.x/v1/x", "/upstream/org%2Fname.gguf%3Ax/v1/models",
    "/v1/%E5%8C%97", "/v1/a%2Fb", "/v1/x;p=1", "/v1/.%61", "/v1/100%25", "/v1/%zz", "/v1/a%20.b",
    "/v1/%C3%A9..x",
]


@pytest.mark.parametrize("path", DOTS)
def test_a_dot_segment_is_refused_however_it_is_written(path: str) -> None:
    """Encoded, encoded again, with another slash, or with something behind it."""
    with pytest.raises(GatewayError, match="the path holds a dot segment"):
        refuse_dots(path)
    with pytest.raises(GatewayError, match="the path holds a dot segment"):
        raw_target({"RAW_URI": f"{path}?a=1", "PATH_INFO": ""})


@pytest.mark.parametrize("path", PLAIN)
def test_any_other_path_stays_as_it_is(path: str) -> None:
    """Dots within a segment are its own business, and so is what the query holds."""
    refuse_dots(path)
    for query in ("", "?a=../../b", "?x=%2e%2e/"):
        assert raw_target({"RAW_URI": path + query, "PATH_INFO": ""}) == path + query


def test_a_path_encoded_without_end_is_refused() -> None:
    """Nobody knows how often it will be decoded."""
    for path in ("/v1/%" + "25" * 4000, "/v1/%" + "25" * 12 + "2e./x"):
        with pytest.raises(GatewayError, match="encoded too many times"):
            refuse_dots(path)


@pytest.mark.parametrize(("uri", "target"), [
    ("http://host/v1/x?a=1", "/v1/x?a=1"), ("v1/x", "/v1/x"),
    ("/v1/x#y", "/v1/x"), ("/v1/x?a=b?c#d", "/v1/x?a=b?c"), ("http://host", "/"),
])
def test_the_target_is_a_path(uri: str, target: str) -> None:
    """Whatever form the request line has."""
    assert raw_target({"RAW_URI": uri, "PATH_INFO": ""}) == target


@pytest.mark.parametrize(("path", "found"), [
    ("//v1/chat/completions", "/v1/chat/completions"), ("///api/chat", "/api/chat"),
    ("/v1//chat/completions", "/v1/chat/completions"), ("//v1//chat//completions",
                                                        "/v1/chat/completions"),
    ("/v1///models", "/v1/models"), ("/v1//models/a//b:x", "/v1/models/a//b:x"),
    ("/v1/models//etc", "/v1/models//etc"), ("//upstream/m//x//", "/upstream/m//x//"),
    ("/api//tags", "/api//tags"), ("/v1/x//", "/v1/x/"), ("//", "/"), ("/v1x//y", "/v1x//y"),
])
def test_slashes_are_merged_where_they_mean_nothing(path: str, found: str) -> None:
    """In front and between the segments of the OpenAI API, but not in names or below /upstream."""
    assert merged(path) == merged(found) == found


@pytest.mark.parametrize("path", ["/a/b", "/A/b/", "//a;x//%62", "/a\\b", "/a%2fb%00c", "/a%252Fb"])
def test_spellings_of_a_path_have_one_form(path: str) -> None:
    """The shortest one."""
    assert folded(path) == "/a/b"
