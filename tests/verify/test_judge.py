"""The judge on forged histories: each anomaly has its name, mixtures have all of theirs, a right history has none."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verify.forging import SOURCES, TARGETS, History, histories, history_of, made, verdict_on
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify import Expected, Finding, Found, Judge, Kind, Outcome, Place, Transaction

KEYS = (b"a", b"b", b"c")

right = st.one_of(
    histories(distinct=True, keys=KEYS, own_keys=True),
    histories(distinct=False, keys=KEYS, own_keys=True),
    histories(distinct=False, keys=(*KEYS, None), own_keys=False),
)
known_apart = histories(distinct=True, keys=KEYS, own_keys=True).filter(lambda history: len(history.found) > 0)
alike = histories(distinct=False, keys=(b"a", b"b", None), own_keys=False)

few = settings(max_examples=40)

#: Two keys of one input partition, in transactions of four.
PLAIN = history_of([made(0, n, (b"a", b"b")[n % 2], b"%d" % n) for n in range(12)], [4], [0])


def without_transactions(history: History) -> tuple[Found, ...]:
    return tuple(replace(each, transaction=None) for each in history.found)


def seen(history: History, value: bytes) -> Found:
    [record] = [each for each in history.found if each.value == value]
    return record


def kinds(expected: tuple[Expected, ...], found: tuple[Found, ...]) -> dict[Kind, int]:
    return dict(verdict_on(expected, found).counts)


@few
@given(right, st.booleans())
def test_a_right_history_is_never_blamed(history: History, known: bool) -> None:
    found = history.found if known else without_transactions(history)
    verdict = verdict_on(history.expected, found)
    assert verdict.held
    assert verdict.matched == verdict.found == verdict.expected == len(history.expected)


@few
@given(right, st.randoms(use_true_random=False))
def test_a_right_history_is_not_blamed_whatever_the_order_of_the_output_partitions(
    history: History, rng: object
) -> None:
    order = sorted(range(len(history.found)), key=lambda n: history.found[n].place.partition == TARGETS[0])
    assert verdict_on(history.expected, [history.found[n] for n in order]).held


@few
@given(known_apart, st.data())
def test_a_record_that_is_left_out_is_lost(history: History, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(history.found) - 1))
    found = without_transactions(history)
    assert kinds(history.expected, found[:index] + found[index + 1 :]) == {Kind.LOST: 1}


@few
@given(known_apart, st.data())
def test_a_record_that_is_there_again_is_duplicated(history: History, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(history.found) - 1))
    again = data.draw(st.integers(index + 1, len(history.found)))
    record = history.found[index]
    found = (*history.found[:again], record, *history.found[again:])
    assert kinds(history.expected, found) == {Kind.DUPLICATED: 1}


@few
@given(known_apart, st.data())
def test_a_record_that_the_input_does_not_make_is_unexpected(history: History, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(history.found)))
    key = data.draw(st.sampled_from([b"a0", b"stranger", None]))
    forged = Found(Place(TARGETS[b"a0"[0] % 2], 1_000_000), key, b"forged")
    found = (*history.found[:index], forged, *history.found[index:])
    assert kinds(history.expected, found) == {Kind.UNEXPECTED: 1}


@few
@given(known_apart, st.data())
def test_a_record_with_another_value_at_its_place_disagrees(history: History, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(history.found) - 1))
    found = list(history.found)
    found[index] = replace(found[index], value=b"forged")
    assert kinds(history.expected, tuple(found)) == {Kind.DISAGREES: 1}


def test_two_neighbours_of_a_key_that_changed_places_are_one_reordered_record() -> None:
    found = list(PLAIN.found)
    of_a = [index for index, each in enumerate(found) if each.key == b"a"]
    one, other = of_a[2], of_a[3]
    found[one], found[other] = found[other], found[one]
    assert kinds(PLAIN.expected, tuple(found)) == {Kind.REORDERED: 1}


def placed(*numbers: int, partition: int = 0, keys: bytes = b"aceg") -> tuple[Found, ...]:
    """What stands in one output partition: these numbers of the input, dealt out to keys."""
    return tuple(
        Found(Place(TARGETS[partition], offset), bytes([keys[n % len(keys)]]), b"%d" % n)
        for offset, n in enumerate(numbers)
    )


def dealt(count: int, partition: int = 0, keys: bytes = b"aceg") -> tuple[Expected, ...]:
    """The input of which `placed` is made."""
    return tuple(made(partition, n, bytes([keys[n % len(keys)]]), b"%d" % n) for n in range(count))


def test_records_of_different_keys_that_changed_places_in_an_output_partition_are_reordered() -> None:
    verdict = verdict_on(dealt(6), placed(0, 2, 1, 3, 4, 5))
    assert verdict.counts == {Kind.REORDERED: 1}
    assert str(verdict.findings[0]) == (
        "reordered: out[0]@1, key 'e', made of in[0]@2, it stands before what is made of in[0]@1"
    )


def test_a_record_that_came_too_late_is_one_reordered_record_whatever_it_is_behind() -> None:
    keys = b"abcdefgh"
    verdict = verdict_on(dealt(8, keys=keys), placed(1, 2, 3, 4, 5, 6, 7, 0, keys=keys))
    assert verdict.counts == {Kind.REORDERED: 1}
    assert "key 'a', made of in[0]@0, it stands behind what is made of in[0]@7" in str(verdict.findings[0])


def test_records_of_different_output_partitions_have_no_order() -> None:
    shuffled = sorted(PLAIN.found, key=lambda each: (each.key or b"", each.place))
    assert verdict_on(PLAIN.expected, shuffled).held


def test_records_of_different_input_partitions_have_no_order() -> None:
    expected = [*dealt(6), *(made(1, n, b"x", b"x%d" % n) for n in range(6))]
    own = [(each.key, each.value) for each in placed(0, 1, 2, 3, 4, 5)]
    other = [(b"x", b"x%d" % n) for n in range(6)]
    mixed = [*other[:2], *own[:3], *other[2:5], *own[3:], other[5]]
    found = [Found(Place(TARGETS[0], at), key, value) for at, (key, value) in enumerate(mixed)]
    assert verdict_on(expected, found).held


@few
@given(known_apart, st.data())
def test_neighbours_of_one_input_and_one_output_partition_must_not_change_places(
    history: History, data: st.DataObject
) -> None:
    source = {each.value: each.source.partition for each in history.expected}
    found = list(without_transactions(history))
    neighbours = [
        index
        for index, (one, other) in enumerate(pairwise(found))
        if one.place.partition == other.place.partition and source[one.value] == source[other.value]
    ]
    if not neighbours:
        return
    index = data.draw(st.sampled_from(neighbours))
    one, other = found[index], found[index + 1]
    found[index], found[index + 1] = replace(other, place=one.place), replace(one, place=other.place)
    assert kinds(history.expected, tuple(found)) == {Kind.REORDERED: 1}


@few
@given(right, st.data())
def test_nothing_is_called_reordered_because_later_records_are_not_there_yet(
    history: History, data: st.DataObject
) -> None:
    """Records that look the same can't be told apart where some of them are still to come."""
    found: list[Found] = []
    for partition in TARGETS:
        mine = [each for each in history.found if each.place.partition == partition]
        found += mine[: data.draw(st.integers(0, len(mine)))]
    assert verdict_on(history.expected, found, complete=dict.fromkeys(SOURCES, 0)).held


@few
@given(right, st.sampled_from([0, 2]), st.data())
def test_nothing_is_called_reordered_because_records_are_lost_or_there_twice(
    history: History, wrong: int, data: st.DataObject
) -> None:
    """Not both: a record that is lost here and there once more elsewhere is one that was moved."""
    found: list[Found] = []
    for each in without_transactions(history):
        found += [each] * data.draw(st.sampled_from([1, 1, 1, wrong]))
    found = [replace(each, place=Place(each.place.partition, at)) for at, each in enumerate(found)]
    findings = verdict_on(history.expected, found).findings
    assert [each for each in findings if "it stands" in each.detail] == []


def test_records_that_may_be_of_another_history_are_not_held_against_the_order_of_the_input() -> None:
    found = placed(0, 2, 1, 3)
    judge = Judge("out", surely=lambda source, place: place.offset > 1)
    for each in dealt(4):
        judge.expect(each)
    for record in found:
        judge.see(record)
    assert judge.finish().held


def test_a_record_that_is_missing_from_the_middle_of_a_transaction_is_torn() -> None:
    found = tuple(each for each in PLAIN.found if each.value not in (b"5", b"6"))
    assert kinds(PLAIN.expected, found) == {Kind.LOST: 2}
    long = history_of(PLAIN.expected, [12], [0])
    found = tuple(each for each in long.found if each.value not in (b"5", b"6"))
    assert kinds(PLAIN.expected, found) == {Kind.TORN: 2}


def test_a_transaction_of_which_one_partition_is_missing_is_torn() -> None:
    long = history_of(PLAIN.expected, [12], [0])
    found = tuple(each for each in long.found if each.place.partition != TARGETS[1])
    # The first of the missing ones is at the edge: nothing that is there was made of input before it.
    assert kinds(PLAIN.expected, found) == {Kind.TORN: 5, Kind.LOST: 1}


def test_cuts_tell_a_torn_transaction_from_a_lost_one() -> None:
    cuts = {SOURCES[0]: [4, 8]}
    torn = [each for each in without_transactions(PLAIN) if each.value not in (b"4", b"7")]
    assert verdict_on(PLAIN.expected, torn, cuts=cuts).counts == {Kind.TORN: 2}
    lost = [each for each in without_transactions(PLAIN) if each.value not in (b"4", b"5", b"6", b"7")]
    assert verdict_on(PLAIN.expected, lost, cuts=cuts).counts == {Kind.LOST: 4}


@pytest.mark.parametrize("outcome", [Outcome.ABORTED, Outcome.OPEN])
def test_a_record_of_a_transaction_that_was_not_committed_is_aborted_and_no_duplicate(outcome: Outcome) -> None:
    record = seen(PLAIN, b"3")
    transaction = Transaction(9, 1, record.place.partition, 7, outcome)
    verdict = verdict_on(PLAIN.expected, (*PLAIN.found, replace(record, transaction=transaction)))
    assert verdict.counts == {Kind.ABORTED: 1}
    assert f"{outcome.value} transaction 7 of producer 9/1" in str(verdict.findings[0])


def test_a_running_count_that_began_again_disagrees_with_the_state_from_there_on() -> None:
    expected = tuple(made(0, n, b"k", b"%d:%d" % (n, n + 1)) for n in range(10))
    found = [Found(Place(TARGETS[0], n), b"k", b"%d:%d" % (n, n + 1 if n < 6 else n - 5)) for n in range(10)]
    assert kinds(expected, tuple(found)) == {Kind.DISAGREES: 4}


def test_input_that_need_not_have_been_processed_yet_makes_nothing_lost() -> None:
    found = without_transactions(PLAIN)[:-3]
    missing = {each.value for each in PLAIN.found} - {each.value for each in found}
    first = min(int(value or b"0") for value in missing)
    verdict = verdict_on(PLAIN.expected, found, complete={SOURCES[0]: first})
    assert (verdict.held, verdict.pending, verdict.expected) == (True, 3, 9)
    assert verdict_on(PLAIN.expected, found, complete={SOURCES[0]: first + 1}).counts == {Kind.LOST: 1}


def test_a_key_from_several_input_partitions_keeps_the_order_of_each() -> None:
    expected = [made(n % 2, n // 2, b"k", b"%d" % n) for n in range(8)]

    def found(*numbers: int) -> tuple[Found, ...]:
        return tuple(Found(Place(TARGETS[0], place), b"k", b"%d" % n) for place, n in enumerate(numbers))

    assert verdict_on(expected, found(1, 3, 0, 5, 2, 4, 7, 6)).held
    assert verdict_on(expected, found(1, 0, 3, 4, 2, 5, 7, 6)).counts == {Kind.REORDERED: 1}
    assert verdict_on(expected, found(1, 3, 0, 5, 2, 4, 7, 6, 0)).counts == {Kind.DUPLICATED: 1}
    assert verdict_on(expected, found(1, 3, 0, 5, 2, 4, 7, 99)).counts == {Kind.LOST: 1, Kind.UNEXPECTED: 1}


@pytest.mark.parametrize(
    ("first", "second", "found"), [(b"ab", b"ba", b"baab"), (b"ab", b"ac", b"acab"), (b"aab", b"ba", b"baaba")]
)
def test_values_that_several_input_partitions_make_are_nobodys_in_particular(
    first: bytes, second: bytes, found: bytes
) -> None:
    expected = [
        made(partition, n, b"k", bytes([letter]))
        for partition, letters in enumerate((first, second))
        for n, letter in enumerate(letters)
    ]
    assert verdict_on(expected, [Found(Place(TARGETS[0], n), b"k", bytes([each])) for n, each in enumerate(found)]).held


def test_a_transaction_reaches_from_its_least_to_its_greatest_input_in_whatever_order_it_is_seen() -> None:
    expected = [made(0, n, key, b"%d" % n) for n, key in enumerate((b"a", b"c", b"e"))]
    transaction = Transaction(1, 0, TARGETS[0], 0, Outcome.COMMITTED)
    found = [Found(Place(TARGETS[0], n), (b"a", b"c", b"e")[n], b"%d" % n, (), transaction) for n in (2, 0)]
    assert kinds(tuple(expected), tuple(found)) == {Kind.TORN: 1}


def test_records_without_a_key_are_only_counted() -> None:
    expected = [made(0, n, None, b"%d" % (n % 3)) for n in range(6)]
    found = [Found(Place(TARGETS[n % 2], n), None, b"%d" % (n % 3)) for n in (5, 1, 0, 4, 2, 3)]
    verdict = verdict_on(expected, found)
    assert (verdict.held, verdict.unordered_keys) == (True, 1)
    assert verdict_on(expected, found[1:]).counts == {Kind.LOST: 1}
    assert verdict_on(expected, [*found, found[0]]).counts == {Kind.DUPLICATED: 1}


def test_a_key_that_is_in_several_output_partitions_keeps_the_order_of_its_input_in_each() -> None:
    expected = [made(0, n, b"k", b"%d" % n) for n in range(6)]

    def found(*numbers: int) -> list[Found]:
        return [Found(Place(TARGETS[n % 2], at), b"k", b"%d" % n) for at, n in enumerate(numbers)]

    assert verdict_on(expected, found(1, 3, 5, 0, 2, 4)).held
    assert verdict_on(expected, found(1, 5, 3, 0, 2, 4)).counts == {Kind.REORDERED: 1}


def test_records_that_look_the_same_in_several_output_partitions_are_only_counted() -> None:
    expected = [made(0, n, b"k", b"%d" % (n // 2)) for n in range(6)]
    found = [Found(Place(TARGETS[n % 2], at), b"k", b"%d" % (n // 2)) for at, n in enumerate((5, 3, 1, 4, 2, 0))]
    verdict = verdict_on(expected, found)
    assert (verdict.held, verdict.unordered_keys) == (True, 1)


def test_headers_belong_to_the_record() -> None:
    expected = [Expected(Place(SOURCES[0], 0), b"k", b"v", (("h", b"1"),))]
    right = Found(Place(TARGETS[0], 0), b"k", b"v", (("h", b"1"),))
    assert verdict_on(expected, [right]).held
    assert verdict_on(expected, [replace(right, headers=())]).counts == {Kind.DISAGREES: 1}


SPOILS = (Kind.LOST, Kind.DUPLICATED, Kind.UNEXPECTED, Kind.DISAGREES, Kind.ABORTED)


@few
@given(st.lists(st.sampled_from(SPOILS), min_size=2, max_size=6))
def test_each_anomaly_of_a_mixture_is_named_and_counted(spoils: list[Kind]) -> None:
    """Every key is spoilt in one way, in the middle of its records."""
    expected = [
        made(n % 3, n // 3, b"%d" % (n % len(spoils) + n % 3 * 100), b"%d" % n) for n in range(30 * len(spoils))
    ]
    history = history_of(expected, [7, 5], [0, 2, 1])
    spoilt: dict[bytes | None, Kind] = {}
    for each in expected:
        spoilt.setdefault(each.key, spoils[len(spoilt) % len(spoils)])
    places: dict[bytes | None, int] = dict.fromkeys(spoilt, 0)
    found: list[Found] = []
    for record in without_transactions(history):
        places[record.key] += 1
        found += spoil(record, spoilt[record.key]) if places[record.key] == 4 else [record]
    wanted = {kind: sum(1 for each in spoilt.values() if each is kind) for kind in set(spoilt.values())}
    assert verdict_on(expected, found).counts == wanted


def spoil(record: Found, kind: Kind) -> list[Found]:
    forged = replace(record, value=b"forged")
    aborted = replace(record, transaction=Transaction(1, 0, record.place.partition, 0, Outcome.ABORTED))
    return {
        Kind.LOST: [],
        Kind.DUPLICATED: [record, record],
        Kind.UNEXPECTED: [record, forged],
        Kind.DISAGREES: [forged],
        Kind.ABORTED: [aborted, record],
    }[kind]


@few
@given(alike, st.data())
def test_every_record_is_accounted_for_once_whatever_was_done_to_it(history: History, data: st.DataObject) -> None:
    changes = st.sampled_from(["keep", "keep", "drop", "twice", "forge", "stranger", "late"])
    found: list[Found] = []
    late: list[Found] = []
    for each in without_transactions(history):
        change = data.draw(changes)
        found += {"keep": [each], "twice": [each, each], "stranger": [replace(each, key=b"?"), each]}.get(change, [])
        found += [replace(each, value=b"forged")] if change == "forge" else []
        late += [each] if change == "late" else []
    verdict = verdict_on(history.expected, [*found, *late])
    count = verdict.counts.get
    missing = sum(count(kind, 0) for kind in (Kind.LOST, Kind.TORN, Kind.DISAGREES))
    beyond = sum(count(kind, 0) for kind in (Kind.DUPLICATED, Kind.UNEXPECTED, Kind.DISAGREES, Kind.ABORTED))
    assert verdict.matched + missing == len(history.expected)
    assert verdict.matched + beyond == verdict.found == len(found) + len(late)


@few
@given(st.lists(st.sampled_from(b"xy"), max_size=40), st.data())
def test_the_least_that_explains_the_difference_is_said(letters: list[int], data: st.DataObject) -> None:
    """Values of one key that repeat: what was only left out is lost, and nothing is called reordered."""
    expected = [made(0, n, b"k", bytes([letter])) for n, letter in enumerate(letters)]
    kept = [data.draw(st.booleans()) for _ in letters]
    found = [Found(Place(TARGETS[0], n), b"k", each.value) for n, each in enumerate(expected) if kept[n]]
    lost = len(letters) - len(found)
    assert verdict_on(expected, found).counts == ({Kind.LOST: lost} if lost else {})


def test_the_first_of_each_kind_are_shown_and_all_are_counted() -> None:
    expected = [made(0, n, b"%d" % (n % 50), b"%d" % n) for n in range(5_000)]
    verdict = verdict_on(expected, [])
    assert verdict.counts == {Kind.LOST: 5_000}
    assert [each.source for each in verdict.findings] == [Place(SOURCES[0], n) for n in range(3)]


def test_a_finding_says_what_where_and_of_what_it_is_made() -> None:
    finding = Finding(
        Kind.DISAGREES, "'k'", Place(TopicPartition("in", 1), 7), Place(TopicPartition("out", 0), 9), "'5'", "'4'"
    )
    assert str(finding) == "disagrees: out[0]@9, key 'k', made of in[1]@7, expected '5', found '4'"
