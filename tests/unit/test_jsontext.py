"""Strict JSON: what is read, what is refused, and that nothing changes on the way through."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.jsontext import MAX_DEPTH, JsonError, decode, encode
from tests.fakes.strict_json import strict_json

READ: list[tuple[bytes, Any]] = [
    (b"{}", {}),
    (b"[]", []),
    (b" \t\r\n{ \"a\" : [ 1 , 2 ] }\n", {"a": [1, 2]}),
    (b"null", None),
    (b"true", True),
    (b"false", False),
    (b'""', ""),
    (b"0", 0),
    (b"-5", -5),
    (b"18446744073709551615", 2**64 - 1),
    (b"9007199254740993", 2**53 + 1),
    (b"-" + b"7" * 4000, -int("7" * 4000)),
    (b"1E2", 100.0),
    (b"1e-400", 0.0),
    (b"0.10000000000000000001", 0.1),
    (b"1.7976931348623157e308", 1.7976931348623157e308),
    (b'"\xe5\x8c\x97\xf0\x9f\x98\x80"', "北😀"),
    (b'"\\u5317\\ud83d\\ude00"', "北😀"),
    (b'"\\"\\\\\\/\\b\\f\\n\\r\\t"', "\"\\/\b\f\n\r\t"),
    (b'"\\u0000\x7f"', "\0\x7f"),
    (b'"\\ud800"', "\ud800"),
    (b'{"":1," ":2}', {"": 1, " ": 2}),
    (b'{"a":{"a":1},"b":{"a":1}}', {"a": {"a": 1}, "b": {"a": 1}}),
    (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
    (b'"\xef\xbb\xbf"', "\ufeff"),
]

NOT_JSON = {
    "empty": b"", "spaces": b" \n", "words": b"hello", "form": b"model=m", "nul": b"\0",
    "html": b"<html></html>", "two": b"{}{}", "tail": b"{} x", "tail_nul": b"{}\0",
    "second_mark": b"\xef\xbb\xbf\xef\xbb\xbf{}", "mark_behind": b"{}\xef\xbb\xbf",
    "half": b'{"a":', "open_list": b"[1", "open_text": b'"a', "missing_value": b'{"a":}',
    "comma_in_list": b"[1,]", "comma_in_object": b'{"a":1,}', "no_comma": b"[1 2]",
    "no_colon": b'{"a" 1}', "bare_key": b"{a:1}", "number_key": b"{1:1}",
    "single_quotes": b"'a'", "comment": b"/**/1", "line_comment": b"1//x", "hash": b"1#x",
    "plus": b"+1", "leading_zero": b"01", "minus": b"-", "no_digit_before": b".5",
    "no_digit_after": b"1.", "no_exponent": b"1e", "hexadecimal": b"0x1", "underscore": b"1_0",
    "arabic_digit": "٣".encode(), "python_true": b"True", "python_none": b"None",
    "undefined": b"undefined", "lower_nan": b"nan", "inf": b"inf", "cut_word": b"tru",
    "bad_escape": b'"\\x41"', "short_escape": b'"\\u12"', "long_escape": b'"\\u{41}"',
    "underscore_escape": b'"\\u1_23"', "raw_newline": b'"a\nb"', "raw_tab": b'"a\tb"',
    "raw_nul": b'"a\0b"', "form_feed": b"\f1", "no_break_space": b"\xc2\xa01",
    "byte_ff": b'"\xff"', "cut_character": b'"\xe5\x8c"', "overlong": b'"\xc0\x80"',
    "surrogate": b'"\xed\xa0\x80"', "beyond_unicode": b'"\xf4\x90\x80\x80"',
    "utf16": '{"a":1}'.encode("utf-16"), "utf16_le": '{"a":1}'.encode("utf-16-le"),
    "utf32": '{"a":1}'.encode("utf-32-be"), "gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
}

REFUSED: list[tuple[bytes, str]] = [
    (b"NaN", "not valid JSON: NaN is no JSON value"),
    (b"[Infinity]", "not valid JSON: Infinity is no JSON value"),
    (b'{"a":-Infinity}', "not valid JSON: -Infinity is no JSON value"),
    (b"1e999", "not valid JSON: a number is out of range"),
    (b"[1,[2,-1e999]]", "not valid JSON: a number is out of range"),
    (b"1" + b"0" * 400 + b".0", "not valid JSON: a number is out of range"),
    (b'{"a":1,"a":1}', "not valid JSON: the key 'a' is repeated"),
    (b'{"a":1,"b":2,"a":3}', "not valid JSON: the key 'a' is repeated"),
    (b'{"model":"m","mod\\u0065l":"n"}', "not valid JSON: the key 'model' is repeated"),
    (b'[{"x":{"c":1,"d":2,"c":3}}]', "not valid JSON: the key 'c' is repeated"),
    (b'{"":1,"":2}', "not valid JSON: the key '' is repeated"),
    (b'{"%b":1,"%b":1}' % (b"k" * 500, b"k" * 500),
     f"not valid JSON: the key '{'k' * 80}' is repeated"),
    (b"7" * 5000, "not readable: a number has 5000 digits"),
    (b"[" * 257 + b"]" * 257, "nested more than 256 levels deep"),
    (b'{"a":' * 257 + b"1" + b"}" * 257, "nested more than 256 levels deep"),
    (b"[" * 990 + b"]" * 990, "nested more than 256 levels deep"),
    (b"[" * 100_000 + b"]" * 100_000, "nested more than 256 levels deep"),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested more than 256 levels deep"),
    (b'[{"a":' * 2500 + b"1" + b"}]" * 2500, "nested more than 256 levels deep"),
]


def short(value: Any) -> str:
    """A readable name for a test's value."""
    return str(value)[:30]


@pytest.mark.parametrize(("raw", "value"), READ, ids=short)
def test_json_is_read(raw: bytes, value: Any) -> None:
    """All that RFC 8259 allows, every digit of an integer kept."""
    found = decode(raw)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("raw", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    """Whatever else is sent, the one sentence says so."""
    with pytest.raises(JsonError) as raised:
        decode(raw)
    assert str(raised.value) == "not valid JSON"


@pytest.mark.parametrize(("raw", "reason"), REFUSED, ids=short)
def test_what_two_readers_would_read_differently_is_refused(raw: bytes, reason: str) -> None:
    """The message completes the sentence "the text is …"."""
    with pytest.raises(JsonError) as raised:
        decode(raw)
    assert str(raised.value) == reason


def test_the_deepest_that_is_read() -> None:
    """The limit itself is allowed, in either kind of nesting."""
    decode(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    decode(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH)


@pytest.mark.parametrize("raw", [
    b"[" + b"[]," * 1000 + b"[]]", b'{"a":"%b"}' % (b"[{" * 5000),
    b"[" + b'{"a":[{}]},' * 1000 + b"0]"])
def test_many_brackets_are_not_deep(raw: bytes) -> None:
    """Width and texts do not count."""
    assert decode(raw) == json.loads(raw)


@pytest.mark.parametrize("raw", [b"-0", b"-0.0", b"-0e5"])
def test_minus_zero_keeps_its_sign(raw: bytes) -> None:
    """An integer cannot hold it, so it becomes a number that can."""
    assert math.copysign(1, decode(raw)) == -1
    assert math.copysign(1, decode(encode(decode(raw)))) == -1


@pytest.mark.parametrize(("value", "raw"), [
    ({"b": 1, "a": [1, 2.5, None, True]}, b'{"b":1,"a":[1,2.5,null,true]}'),
    ("北😀", '"北😀"'.encode()),
    ("\"\\\n\0\x7f\u2028", b'"\\"\\\\\\n\\u0000\x7f\xe2\x80\xa8"'),
    ("\ud800", b'"\\ud800"'),
    ({"\udfff": "a\udc00b"}, b'{"\\udfff":"a\\udc00b"}'),
    (2**64 - 1, b"18446744073709551615"),
])
def test_json_is_written_compactly(value: Any, raw: bytes) -> None:
    """In the order of the keys, as UTF-8 whatever the text holds."""
    assert encode(value) == raw
    assert decode(raw) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], {"a": math.nan}])
def test_what_json_cannot_hold_is_not_written(value: Any) -> None:
    """Nobody gets to see NaN or Infinity."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(value)


TEXTS = st.text(st.characters(exclude_categories=[]), max_size=8)
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?",
                        fullmatch=True).filter(lambda digits: math.isfinite(float(digits)))


def _array(items: list[str]) -> str:
    return f"[{' , '.join(items)}]"


def _object(items: dict[str, str]) -> str:
    return "{%s}" % ",\n ".join(f"{json.dumps(key)}: {item}" for key, item in items.items())


DOCUMENTS = st.recursive(
    NUMBERS | TEXTS.map(json.dumps) | st.sampled_from(["null", "true", "false"]),
    lambda inner: st.lists(inner, max_size=4).map(_array)
    | st.dictionaries(TEXTS, inner, max_size=4).map(_object),
    max_leaves=20)


def exact(raw: bytes) -> Any:
    """The document with objects as lists of pairs and numbers as their exact values."""
    def number(digits: str) -> tuple[str, Any]:
        whole = digits.lstrip("-").isdigit() and digits != "-0"
        value = float(digits)
        return ("integer", int(digits)) if whole else ("double", (value, math.copysign(1, value)))

    return json.loads(raw, object_pairs_hook=list, parse_int=number, parse_float=number)


@settings(deadline=None)
@given(DOCUMENTS)
def test_a_round_trip_changes_no_value_and_no_order(text: str) -> None:
    """Every integer keeps its digits, every other number its double, every object its order."""
    raw = text.encode()
    assert exact(encode(decode(raw))) == exact(raw)


@settings(deadline=None)
@given(st.one_of(
    st.binary(max_size=40),
    st.text("[]{}\",:\\ue0-1.NaIf\ufeff\ud800 tr", max_size=30).map(
        lambda text: text.encode("utf-8", "surrogatepass"))))
def test_any_bytes_give_a_value_or_a_json_error(raw: bytes) -> None:
    """Nothing else is raised, and what is read, a strict reader reads the same."""
    try:
        value = decode(raw)
    except JsonError:
        return
    assert value == strict_json(raw.removeprefix(b"\xef\xbb\xbf"))
