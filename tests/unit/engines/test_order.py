"""Who is next in the queue of an engine: urgency, then turns between callers, then arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.call import Priority
from app.engines.order import LastTurn, Waiting, next_in_line, urgency

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
STEP = 15.0  # a quarter of the longest wait
NOW = 100.0
NEVER = float("-inf")


def waiting(
    number: int, caller: str = "a", priority: Priority = NORMAL, age: float = 0.0, turn: int = 0,
) -> Waiting:
    """A call that has waited for `age` seconds by NOW."""
    return Waiting(priority, caller, NOW - age, number, turn)


def turns(numbers: dict[str, int], at: float = NOW, priority: Priority = LOW
          ) -> dict[str, LastTurn]:
    """Last turns of these numbers, all then and for calls of that priority."""
    return {caller: LastTurn().then(priority, number, at) for caller, number in numbers.items()}


def order_of(calls: Sequence[Waiting], served: dict[str, int] | None = None) -> list[int]:
    """The numbers of the calls in the order in which they are served, all at NOW."""
    left, last, numbers = list(calls), turns(served or {}, NEVER), []
    turn = max((served or {}).values(), default=0)
    while left:
        call = left.pop(next_in_line(left, last, NOW, STEP))
        turn += 1
        last[call.caller] = last.get(call.caller, LastTurn()).then(call.priority, turn, NOW)
        numbers.append(call.number)
    return numbers


URGENCIES = [
    (HIGH, 0.0, HIGH), (HIGH, 1000.0, HIGH),
    (NORMAL, 0.0, NORMAL), (NORMAL, 14.9, NORMAL), (NORMAL, 15.0, HIGH), (NORMAL, 59.0, HIGH),
    (LOW, 14.9, LOW), (LOW, 15.0, NORMAL), (LOW, 29.9, NORMAL), (LOW, 30.0, HIGH),
    (LOW, 59.0, HIGH), (NORMAL, -0.5, NORMAL),
]


@pytest.mark.parametrize(("priority", "age", "expected"), URGENCIES)
def test_a_call_gets_more_urgent_as_it_waits(
        priority: Priority, age: float, expected: Priority) -> None:
    """One step after a quarter of the longest wait, two after half of it, never past HIGH; the
    wait counts from its caller's last turn, where that was later than the call."""
    assert urgency(waiting(1, priority=priority, age=age), NEVER, NOW, STEP) == expected
    assert urgency(waiting(1, priority=priority, age=age), NOW - age - 1, NOW, STEP) == expected
    assert urgency(waiting(1, priority=priority, age=1000.0), NOW - age, NOW, STEP) == expected


NEXT = [
    ("one", [waiting(1)], {}, 0),
    ("HIGH before NORMAL", [waiting(1), waiting(2, priority=HIGH)], {}, 1),
    ("NORMAL before LOW", [waiting(1, priority=LOW), waiting(2)], {}, 1),
    ("HIGH before who waits longer",
     [waiting(1, "a", NORMAL, 14.0), waiting(2, "b", HIGH)], {"b": 9}, 1),
    ("LOW that has aged one step is as NORMAL",
     [waiting(1, "a", LOW, 15.0), waiting(2, "b", NORMAL)], {}, 0),
    ("LOW that has aged two steps passes NORMAL",
     [waiting(1, "a", NORMAL), waiting(2, "b", LOW, 30.0)], {"b": 9}, 1),
    ("LOW that has aged two steps takes turns with HIGH",
     [waiting(1, "a", HIGH), waiting(2, "b", LOW, 30.0)], {"a": 9}, 1),
    ("NORMAL that has aged passes NORMAL",
     [waiting(1, "a", NORMAL, 14.0), waiting(2, "b", NORMAL, 15.0)], {"b": 9}, 1),
    ("the caller without a turn", [waiting(1, "a"), waiting(2, "b")], {"a": 1}, 1),
    ("the caller whose turn is longest ago",
     [waiting(1, "a"), waiting(2, "b"), waiting(3, "c")], {"a": 7, "b": 5, "c": 6}, 1),
    ("callers without turns in the order of arrival",
     [waiting(2, "b"), waiting(1, "a")], {}, 1),
    ("one caller's calls in the order of arrival", [waiting(2), waiting(1)], {"a": 3}, 1),
    ("a new caller after who has waited since before it came",
     [waiting(8, "new", turn=6), waiting(1, "a")], {"a": 5}, 1),
    ("a new caller before who had a turn since it came",
     [waiting(1, "a"), waiting(8, "new", turn=6)], {"a": 7}, 1),
    ("a new caller before who had a turn just when it came",
     [waiting(1, "a"), waiting(8, "new", turn=6)], {"a": 6}, 1),
]


@pytest.mark.parametrize(("calls", "served", "expected"), [case[1:] for case in NEXT],
                         ids=[case[0] for case in NEXT])
def test_who_is_next(calls: list[Waiting], served: dict[str, int], expected: int) -> None:
    """The table of the branches, one after the other; the last turns were long ago."""
    assert next_in_line(calls, turns(served, NEVER), NOW, STEP) == expected


SERVED = [
    ("a backlog that is served does not pass a fresh call",
     [waiting(1, "big", NORMAL, 50.0), waiting(9, "small", NORMAL, turn=3)],
     turns({"big": 3}, NOW - 1.0), 1),
    ("nor does a backlog of LOW",
     [waiting(1, "big", LOW, 50.0), waiting(9, "small", NORMAL, turn=3)],
     turns({"big": 3}, NOW - 1.0), 1),
    ("it does where its caller had no turn for a step",
     [waiting(1, "big", NORMAL, 50.0), waiting(9, "small", NORMAL, turn=3)],
     turns({"big": 3}, NOW - 15.0), 0),
    ("turns with more urgent calls count between callers",
     [waiting(1, "big", LOW, 50.0), waiting(9, "small", NORMAL, turn=3)],
     turns({"big": 3}, NOW - 1.0, HIGH), 1),
    ("and not among a caller's own calls",
     [waiting(1, "a", LOW, 50.0), waiting(2, "a", HIGH, 20.0)],
     turns({"a": 3}, NOW - 1.0, HIGH), 0),
    ("where turns with less urgent ones do",
     [waiting(1, "a", NORMAL, 50.0), waiting(2, "a", HIGH, 20.0)],
     turns({"a": 3}, NOW - 1.0, LOW), 1),
    ("the caller whose urgent call brings the turn spends it on one that waits for longer",
     [waiting(1, "a", LOW, 50.0), waiting(2, "a", HIGH), waiting(3, "b", NORMAL, 14.0)],
     turns({"a": 3}, NOW - 1.0, HIGH), 0),
]


@pytest.mark.parametrize(("calls", "served", "expected"), [case[1:] for case in SERVED],
                         ids=[case[0] for case in SERVED])
def test_a_caller_with_turns_is_not_starved(
        calls: list[Waiting], served: dict[str, LastTurn], expected: int) -> None:
    """Only the time without a turn makes its calls more urgent."""
    assert next_in_line(calls, served, NOW, STEP) == expected


def test_turns_are_remembered_by_priority() -> None:
    """Of each priority the last time that a call of it, or of a less urgent one, was served."""
    last = LastTurn().then(LOW, 1, 10.0).then(HIGH, 2, 20.0)
    assert (last.number, last.at) == (2, (20.0, 10.0, 10.0))
    assert last.then(NORMAL, 3, 30.0).at == (30.0, 30.0, 10.0)


@pytest.mark.parametrize("priority", list(Priority))
def test_a_single_call_waits_for_one_call_of_two_hundred(priority: Priority) -> None:
    """Whoever has many calls does not delay another by more than the one that is next."""
    crowd = [waiting(number, "many", priority) for number in range(200)]
    single = waiting(200, "one", priority, turn=1)
    for served in ({"many": 1}, {"many": 1, "one": 0}):
        assert order_of([*crowd, single], served).index(200) <= 1


def test_callers_with_many_calls_take_turns() -> None:
    """However many calls each has, and in whatever order they came."""
    calls = [waiting(number, "abbccc"[number // 10]) for number in range(60)]
    callers = {call.number: call.caller for call in calls}
    order = [callers[number] for number in order_of(calls)]
    assert order[:30] == ["a", "b", "c"] * 10
    assert order[30:50] == ["b", "c"] * 10
    assert order[50:] == ["c"] * 10


def test_a_callers_calls_stay_in_order() -> None:
    """First come, first served, whatever happens between callers."""
    calls = [waiting(number, "abc"[number % 3], turn=number // 4) for number in range(60)]
    order = order_of(calls, {"a": 40, "c": 3})
    for rest in range(3):
        assert [number for number in order if number % 3 == rest] == list(range(rest, 60, 3))


@pytest.mark.parametrize("stream", [HIGH, NORMAL])
def test_a_low_call_is_never_starved(stream: Priority) -> None:
    """With one slot and more urgent calls all the time it is served after half the longest wait."""
    low = waiting(0, "low", LOW)
    ahead = [waiting(number, "busy", stream) for number in range(1, 3)]
    served: dict[str, LastTurn] = {}
    for turn in range(1, 100):
        now = NOW + turn - 1.0
        calls = [low, *ahead]
        call = calls[next_in_line(calls, served, now, STEP)]
        if call is low:
            assert now - NOW == 2 * STEP - (STEP if stream is NORMAL else 0)
            return
        served[call.caller] = LastTurn().then(stream, turn, now)
        ahead.remove(call)
        ahead.append(Waiting(stream, "busy", now, 10 + turn, turn))
    raise AssertionError("the call was never served")


def test_new_callers_do_not_pass_for_ever_who_had_a_turn_before() -> None:
    """A caller that waits is not passed by those who come after it, though they had no turn yet."""
    served = turns({"old": 5})
    mine = waiting(6, "old", turn=5)
    for turn in range(6, 12):
        calls = [mine, waiting(turn + 1, f"new-{turn}", turn=turn - 1)]
        call = calls[next_in_line(calls, served, NOW, STEP)]
        if call is mine:
            assert turn <= 7
            return
        served[call.caller] = LastTurn().then(NORMAL, turn, NOW)
    raise AssertionError("the call was never served")


def test_the_choice_does_not_depend_on_the_sequence() -> None:
    """Only what is known of the calls counts, not the order in which they are listed."""
    calls = [waiting(number, "abcd"[number % 4], Priority(number % 3), age=7.0 * (number % 5))
             for number in range(24)]
    served = turns({"a": 3, "c": 1}, NOW - 10.0)
    expected = calls[next_in_line(calls, served, NOW, STEP)]
    for shift in range(len(calls)):
        turned = [replace(call) for call in calls[shift:] + calls[:shift]]
        assert turned[next_in_line(turned, served, NOW, STEP)] == expected
