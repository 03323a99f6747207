"""The values that say who may do what: one typed value for each legal spelling, a rule for others.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from app.config import access
from app.config.values import Reader, Rejected

HASH = "0123456789abcdef" * 4
TWO = timezone(timedelta(hours=2))
UTC = timezone.utc
READ = [
    (access.name, "alice", "alice"),
    (access.name, "Alice B. (ci) ü", "Alice B. (ci) ü"),
    (access.name, "x" * 64, "x" * 64),
    (access.sha256, HASH, HASH),
    (access.sha256, HASH.upper(), HASH),
    (access.scopes, ["infer"], ("infer",)),
    (access.scopes, ["metrics", "admin", "infer"], ("metrics", "admin", "infer")),
    (access.rate, "60/minute", "60/minute"),
    (access.rate, "1 / second", "1/second"),
    (access.rate, "999999999/day", "999999999/day"),
    (access.rate, "5/hour", "5/hour"),
    (access.priority, "NORMAL", "NORMAL"),
    (access.priority, "low", "LOW"),
    (access.moment, date(2030, 12, 31), datetime(2031, 1, 1, tzinfo=UTC)),
    (access.moment, "2030-12-31", datetime(2031, 1, 1, tzinfo=UTC)),
    (access.moment, "2030-12-31T18:00:00Z", datetime(2030, 12, 31, 18, tzinfo=UTC)),
    (access.moment, "2030-12-31 18:00", datetime(2030, 12, 31, 18, tzinfo=UTC)),
    (access.moment, datetime(2030, 12, 31, 18), datetime(2030, 12, 31, 18, tzinfo=UTC)),
    (access.moment, "2030-12-31T18:00:00+02:00", datetime(2030, 12, 31, 18, tzinfo=TWO)),
    (access.moment, date.max, datetime.max.replace(tzinfo=UTC)),
    (access.hosts_of, [], ()),
    (access.hosts_of, ["GW.example.org", "*.lan", "a_b", "*"],
     ("gw.example.org", "*.lan", "a_b", "*")),
    (access.hosts_of, ["203.0.113.5", "[2001:db8::1]"], ("203.0.113.5", "2001:db8::1")),
    (access.origins_of, [], ()),
    (access.origins_of, ["https://a.example/", "http://*.b:*", "x-ext://*", "*"],
     ("https://a.example", "http://*.b:*", "x-ext://*", "*")),
    (access.storage, "memory://", "memory://"),
    (access.storage, "redis://:pw@host:6379/1", "redis://:pw@host:6379/1"),
    (access.storage, "rediss://host", "rediss://host"),
]
REFUSED = [
    (access.name, "not blank", [None, "", " ", 5, [], {}]),
    (access.name, "printable characters", ["x" * 65, "a\nb", " a", "a ", "a\x00", "a\x1b[1m"]),
    (access.sha256, "64 hex digits, never the key itself", [
        None, "", "sk-1", HASH[:-1], f"{HASH}0", f" {HASH}", "g" * 64, 5, [HASH], {}, HASH[:63]]),
    (access.scopes, "at least one of infer, admin, metrics", [
        [], ["root"], ["infer", "root"], ["Infer"]]),
    (access.scopes, "a list of texts", [None, "infer", {}, 5]),
    (access.rate, "a count and a second", [
        None, "", 60, "60", "60/", "/minute", "0/minute", "-1/minute", "1.5/minute", "60/week",
        "60/minutes", "60 per minute", "1/minute;5/hour", "1" * 10 + "/minute", True, []]),
    (access.priority, "one of HIGH, NORMAL, LOW", [None, "", "URGENT", 0, [], True]),
    (access.moment, "a date such as", [
        None, "", "never", "2030", "2030-13-01", "2030-02-30", "31.12.2030", 5, [], {}, True]),
    (access.hosts_of, "a list of texts", [None, "a", {}, 5]),
    (access.hosts_of, "names without port", [
        ["http://a"], ["a:80"], ["a/b"], ["a b"], ["*a"], ["a.*"], ["a..b"], ["ü"], ["[a]"]]),
    (access.origins_of, "must be origins", [
        ["a.example"], ["https://"], ["https://a/b"], ["null"], ["https://a", "b"]]),
    (access.storage, "memory:// or the address of a Redis server", [
        "redis://", "redis://h:x", "redis://h:0", "redis://h:99999", "memcached://h", "host:6379",
        "memory", "http://h", None, "", 5]),
]


@pytest.mark.parametrize(("reader", "value", "expected"), READ)
def test_a_good_value_is_read(reader: Reader, value: Any, expected: Any) -> None:
    """Every legal spelling gives one typed value."""
    found = reader(value)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(("reader", "rule", "value"), [
    pytest.param(reader, rule, value, id=f"{rule[:20]}-{str(value)[:20]}")
    for reader, rule, bad in REFUSED for value in bad])
def test_a_bad_value_is_refused_with_its_rule(reader: Reader, rule: str, value: Any) -> None:
    """Nothing but Rejected is raised; it says what to write instead and repeats nothing."""
    with pytest.raises(Rejected, match=rule) as raised:
        reader(value)
    assert "sk-1" not in str(raised.value)
