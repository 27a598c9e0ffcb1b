from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.kafka.transactions.naming import SlotName, parse_transactional_id, transactional_id
from twopc.protocol.ids import AttemptId, SubtaskIndex

prefixes = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
numbers = st.integers(0, 9999)
names = st.builds(SlotName, numbers.map(AttemptId), numbers.map(SubtaskIndex), numbers)


@given(prefixes, names)
def test_what_is_built_is_read_back(prefix: str, name: SlotName) -> None:
    assert parse_transactional_id(prefix, transactional_id(prefix, name)) == name


@given(prefixes, prefixes, names)
def test_an_id_is_read_with_its_own_prefix_only(prefix: str, other: str, name: SlotName) -> None:
    read = parse_transactional_id(other, transactional_id(prefix, name))
    assert (read is not None) == (other == prefix)


@given(prefixes, names, names)
def test_two_attempts_never_share_an_id(prefix: str, one: SlotName, another: SlotName) -> None:
    same = transactional_id(prefix, one) == transactional_id(prefix, another)
    assert same == (one == another)


@pytest.mark.parametrize(
    "text",
    [
        "job",
        "job-0-0",
        "job-x-1-0-0",
        "ajob-1-0-0",
        "job-1-1-0-0",
        "job-1-0-0\n",
        "job--1-0-0",
        "job-1-0-x",
        "job-01-0-0",
        "job-٣-0-0",
    ],
)
def test_ids_of_others_are_not_ours(text: str) -> None:
    assert parse_transactional_id("job", text) is None


def test_a_prefix_is_no_pattern() -> None:
    assert parse_transactional_id("j.b", "jxb-1-0-0") is None


def test_a_job_whose_name_ends_like_an_attempt_keeps_its_ids_to_itself() -> None:
    of_the_longer = transactional_id("job-1", SlotName(AttemptId(2), SubtaskIndex(3), 0))
    assert parse_transactional_id("job", of_the_longer) is None
    of_the_shorter = transactional_id("job", SlotName(AttemptId(1), SubtaskIndex(2), 3))
    assert parse_transactional_id("job-1", of_the_shorter) is None
