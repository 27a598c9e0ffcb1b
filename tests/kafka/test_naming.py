from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.kafka.naming import FIRST_SLOTS, SlotName, added_slot, parse_transactional_id, transactional_id
from twopc.protocol.ids import AttemptId, SubtaskIndex


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True), st.integers(0, 99), st.integers(0, 9999))
def test_what_is_built_is_read_back(prefix: str, subtask: int, slot: int) -> None:
    name = transactional_id(prefix, SubtaskIndex(subtask), slot)
    assert parse_transactional_id(prefix, name) == SlotName(SubtaskIndex(subtask), slot)


@pytest.mark.parametrize(
    "name",
    ["job", "job-0", "job-x-0-0", "ajob-0-0", "job-0-0-0", "job-0-0\n", "job--1-0", "job-0-x", "jxb-0-0", "job-٣-0"],
)
def test_ids_of_others_are_not_ours(name: str) -> None:
    assert parse_transactional_id("j.b" if name == "jxb-0-0" else "job", name) is None


def test_a_first_slot_may_belong_to_any_attempt_and_an_added_one_only_to_its_own() -> None:
    added = SlotName(SubtaskIndex(0), added_slot(AttemptId(4), FIRST_SLOTS))
    assert added.may_belong_to(AttemptId(4), parallelism=1)
    assert not added.may_belong_to(AttemptId(5), parallelism=1)
    assert SlotName(SubtaskIndex(0), 0).may_belong_to(AttemptId(5), parallelism=1)


def test_a_subtask_beyond_the_parallelism_belongs_to_an_earlier_attempt() -> None:
    assert not SlotName(SubtaskIndex(2), 0).may_belong_to(AttemptId(5), parallelism=2)
