"""Two versions of a job are told apart by what they make of each input record, and the records are named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from twopc.drill.verdict import CheckVerdict
from twopc.drill.version_diff import EXAMPLES, VersionDiff, VersionOutput, diff, failed
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.history import Expected, Headers

IN = (TopicPartition("in", 0), TopicPartition("in", 1))


def made(
    offset: int,
    value: bytes | None,
    key: bytes | None = b"a",
    partition: int = 0,
    topic: str = "out",
    headers: Headers = (),
) -> tuple[str, Expected]:
    return topic, Expected(Place(IN[partition], offset), key, value, headers)


def differing(one: Sequence[tuple[str, Expected]], other: Sequence[tuple[str, Expected]]) -> VersionDiff:
    return diff(VersionOutput("old.py", one), VersionOutput("new.py", other))


COUNTS = [made(n, b"%d" % n, b"k%d" % (n % 3), n % 2) for n in range(12)]


def test_the_same_output_holds() -> None:
    found = differing(COUNTS, COUNTS)
    assert (found.check().verdict, found.same) == (CheckVerdict.HELD, 12)
    assert found.check().text == "old.py and new.py make the same 12 records"


def test_in_which_order_input_partitions_were_read_is_no_difference() -> None:
    assert differing(COUNTS, sorted(COUNTS, key=lambda each: each[1].source)).counts == {}


def test_another_value_is_named_by_input_record_and_key_with_both_values() -> None:
    found = differing([made(7, b"1"), made(8, b"2")], [made(7, b"1"), made(8, b"3")])
    assert found.findings == (
        "another value: in[0]@8, key 'a', to out: old.py makes value '2', new.py makes value '3'",
    )
    assert found.check().text == "the versions differ: 1 with another value; 1 the same"


def test_a_record_of_one_version_only_is_named_with_the_version() -> None:
    both = [made(1, b"x"), made(4, b"z")]
    more = [both[0], made(3, b"y", b"b"), both[1]]
    assert differing(more, both).findings == ("only old.py: in[0]@3, key 'b', to out, value 'y'",)
    assert differing(both, more).findings == ("only new.py: in[0]@3, key 'b', to out, value 'y'",)


def test_a_record_that_the_other_makes_twice_is_only_of_the_other() -> None:
    found = differing([made(1, b"x")], [made(1, b"x"), made(1, b"x")])
    assert found.findings == ("only new.py: in[0]@1, key 'a', to out, value 'x'",)


def test_records_without_a_key_are_paired_all_the_same() -> None:
    found = differing(
        [made(1, b"x", None), made(2, b"y", None)],
        [made(1, b"x", None), made(2, b"Y", None)],
    )
    assert [each.partition(":")[0] for each in found.findings] == ["another value"]
    assert "key null" in found.findings[0]


def test_another_key_is_a_record_of_each_version() -> None:
    found = differing([made(1, b"x", b"a")], [made(1, b"x", b"b")])
    assert found.findings == (
        "only old.py: in[0]@1, key 'a', to out, value 'x'",
        "only new.py: in[0]@1, key 'b', to out, value 'x'",
    )


def test_another_topic_is_a_record_of_each_version() -> None:
    found = differing([made(1, b"x")], [made(1, b"x", topic="late")])
    assert [each.rpartition(", value")[0] for each in found.findings] == [
        "only old.py: in[0]@1, key 'a', to out",
        "only new.py: in[0]@1, key 'a', to late",
    ]


def test_other_headers_are_another_value_and_are_shown() -> None:
    [finding] = differing([made(1, b"x")], [made(1, b"x", headers=(("trace", b"7"),))]).findings
    assert finding.endswith("old.py makes value 'x', new.py makes value 'x' with headers trace='7'")


def test_another_order_of_the_records_of_a_key_is_named() -> None:
    found = differing([made(1, b"x"), made(1, b"y")], [made(1, b"y"), made(1, b"x")])
    assert [each.partition(":")[0] for each in found.findings] == ["another order"]


def test_where_many_differ_the_first_of_the_input_are_named_and_all_are_counted() -> None:
    keys = [b"b", b"a"] * 30
    one = [made(n, b"%d" % n, key) for n, key in enumerate(keys)]
    other = [made(n, b"-%d" % n, key) for n, key in enumerate(keys)]
    found = differing(one, other)
    assert [each.split(",")[0] for each in found.findings] == [f"another value: in[0]@{n}" for n in range(EXAMPLES)]
    assert found.figures["with another value, records"] == 60


def test_a_version_that_fails_where_the_other_does_not_is_a_difference_that_names_the_record() -> None:
    good, bad = VersionOutput("old.py", COUNTS), VersionOutput("new.py", failure="in[0]@3: map raised")
    for pair in ((good, bad), (bad, good)):
        check = failed(*pair)
        assert check is not None
        assert (check.verdict, check.findings) == (CheckVerdict.BROKEN, ("in[0]@3: map raised",))
        assert check.text.startswith("new.py fails on a record that old.py takes")
    assert failed(good, good) is None


@pytest.mark.parametrize("side", [0, 1])
def test_a_version_that_makes_nothing_is_told_from_one_that_does(side: int) -> None:
    pair = (COUNTS, []) if side else ([], COUNTS)
    found = differing(*pair)
    assert found.same == 0
    name = "only of the job, records" if side else "only of the other, records"
    assert found.figures[name] == 12
