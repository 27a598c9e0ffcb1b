"""The verifier on forged histories: each kind of fault is found, by its name, and a right history is left in peace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest

from tests.counting.numbered_input import NumberedInput
from tests.counting.transcript import Transcript
from tests.counting.verifier import Fault, Mark, Verifier
from twopc.testing.topics import Read

SOURCE = NumberedInput(keys=(b"a", b"b", b"c"), partitions=2, records=20)
#: Input partition 0 holds keys a and c: 0, 2, 3, 5, 6, 8, ...; its transactions end at 4 and at 10.
CUTS = {0: (4, 10), 1: (3,)}


def mark_of(read: Read) -> Mark | None:
    lane = SOURCE.lane_of(read.key)
    assert read.value is not None
    number, _, writer = read.value.partition(b" ")
    return None if lane is None else Mark(lane, int(number) // len(SOURCE.keys), writer.decode())


def read_of(number: int, writer: str = "w", offset: int = 0) -> Read:
    lane = number % len(SOURCE.keys)
    value = b"%d %s" % (number, writer.encode())
    return Read("out", SOURCE.partition_of(lane), offset, SOURCE.keys[lane], value, 0)


def faults(numbers: Iterable[int | Read], cuts: Mapping[int, Sequence[int]] | None = None) -> set[Fault]:
    verifier = Verifier(SOURCE, mark_of)
    for each in numbers:
        verifier.see(each if isinstance(each, Read) else read_of(each))
    return {finding.fault for finding in verifier.finish(cuts)}


def test_what_the_input_makes_is_fine_in_any_order_of_the_keys() -> None:
    by_key = [number for lane in SOURCE.lanes for number in range(lane, 20, 3)]
    assert faults(range(20), CUTS) == set()
    assert faults(by_key, CUTS) == set()


def test_what_is_missing_at_the_end_is_lost() -> None:
    assert faults(range(17)) == {Fault.LOST}


def test_a_place_that_is_skipped_is_a_gap_while_it_runs() -> None:
    verifier = Verifier(SOURCE, mark_of)
    for number in (0, 1, 2, 6):
        verifier.see(read_of(number, offset=number))
    (finding,) = verifier.findings
    assert str(finding) == "gap: out[0]@6 is place 2 of key b'a' (number 6), where place 1 is next"


def test_a_gap_that_is_never_filled_is_lost_too() -> None:
    assert faults(number for number in range(20) if number != 9) == {Fault.GAP, Fault.LOST}


def test_a_record_that_comes_again_is_duplicated() -> None:
    assert faults([*range(20), 7]) == {Fault.DUPLICATED}


def test_records_of_one_key_in_the_wrong_order_are_reordered_and_not_lost() -> None:
    assert faults([0, 1, 2, 6, 4, 5, 3, *range(7, 20)]) == {Fault.GAP, Fault.REORDERED}


def test_records_of_several_keys_in_another_order_are_not() -> None:
    assert faults([2, 1, 0, *range(3, 20)]) == set()


def test_a_record_that_the_input_does_not_make_is_foreign() -> None:
    assert faults([*range(20), 20]) == {Fault.FOREIGN}
    assert faults([*range(20), Read("out", 0, 0, b"stranger", b"1 w", 0)]) == {Fault.FOREIGN}


def test_a_transaction_of_which_some_is_missing_is_torn() -> None:
    # The positions 4 to 10 of input partition 0 hold 6, 8, 9, 11, 12 and 14.
    without_key_c = [number for number in range(20) if number not in (8, 11, 14)]
    assert faults(without_key_c, CUTS) == {Fault.GAP, Fault.TORN}


def test_a_transaction_that_is_missing_whole_is_lost() -> None:
    without_all = [number for number in range(20) if number not in (6, 8, 9, 11, 12, 14)]
    assert faults(without_all, CUTS) == {Fault.GAP, Fault.LOST}


@pytest.mark.parametrize(("visible", "expected"), [((0, 2, 3, 5), set()), ((0, 2, 3), {Fault.TORN})])
def test_a_transaction_that_could_be_seen_in_part_is_torn_even_if_it_is_whole_later(
    visible: tuple[int, ...], expected: set[Fault]
) -> None:
    verifier = Verifier(SOURCE, mark_of)
    for number in visible:
        verifier.see(read_of(number))
    verifier.caught_up(0)
    for number in range(20):
        if number not in visible:
            verifier.see(read_of(number))
    assert {finding.fault for finding in verifier.finish(CUTS)} == expected


def test_a_record_that_another_process_wrote_within_a_transaction_was_of_an_aborted_one() -> None:
    history = [read_of(number, "old" if number == 9 else "new") for number in range(20)]
    assert faults(history, CUTS) == {Fault.ABORTED}


def test_a_process_that_writes_again_after_another_took_over_was_to_be_fenced() -> None:
    writers = ["old"] * 6 + ["new"] * 9 + ["old"] * 5
    assert faults([read_of(number, writers[number]) for number in range(20)], {0: (4, 10), 1: (2, 5)}) == {
        Fault.ABORTED
    }


def test_another_process_may_take_over_where_a_transaction_ended() -> None:
    writers = ["old"] * 6 + ["new"] * 14
    assert faults([read_of(number, writers[number]) for number in range(20)], {0: (4, 10), 1: (2,)}) == set()


def test_two_readers_that_saw_the_same_agree_whatever_the_order_of_partitions() -> None:
    one, two = Transcript(), Transcript()
    for number in range(20):
        one.note(read_of(number, offset=number))
    for number in sorted(range(20), key=lambda number: SOURCE.partition_of(number % 3)):
        two.note(read_of(number, offset=number))
    assert one.differences(two) == []


def test_two_readers_that_saw_different_values_at_one_offset_are_told_apart() -> None:
    one, two = Transcript(), Transcript()
    for transcript, writer in ((one, "x"), (two, "y")):
        for number in range(3):
            transcript.note(read_of(number, writer if number == 2 else "w", offset=number))
    assert [text.partition(":")[0] for text in one.differences(two)] == ["partition 0, record 1"]
    two.note(read_of(4, offset=4))
    assert len(one.differences(two)) == 2
