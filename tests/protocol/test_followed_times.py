"""The stream times that go through a whole job, of what all subtasks tell of theirs."""

from __future__ import annotations

from collections.abc import Mapping

from twopc.protocol.followed_times import FollowedTime, NumberTimes, job_times


def followed(told: list[list[NumberTimes]], before: Mapping[str, int] | None = None) -> tuple[FollowedTime, ...]:
    return job_times(told, before or {}).followed


def test_the_least_of_the_numbers_with_records_is_followed_whichever_subtask_has_them() -> None:
    told = [[NumberTimes("a", 5, 9), NumberTimes("b", 7, 7)], [NumberTimes("a", 3, 3), NumberTimes("b", None, 1)]]
    assert followed(told) == (FollowedTime("a", 3), FollowedTime("b", 7))


def test_where_a_number_has_records_and_no_time_yet_nobody_goes_on() -> None:
    assert followed([[NumberTimes("a", 5, 5)], [NumberTimes("a", None, None, holds=True)]]) == ()


def test_where_the_input_of_every_number_is_over_the_greatest_of_all_is_followed() -> None:
    assert followed([[NumberTimes("a", None, 5)], [NumberTimes("a", None, 9)]]) == (FollowedTime("a", 9),)


def test_where_no_number_has_a_time_there_is_none_to_follow() -> None:
    assert followed([[NumberTimes("a", None, None)], []]) == ()


def test_a_number_at_rest_holds_others_up_to_what_was_known_before_it_was_seen_to_rest() -> None:
    told = [[NumberTimes("a", 9, 9)], [NumberTimes("a", None, 2, rests=True, resting=2)]]
    assert followed(told, {"a": 7}) == (FollowedTime("a", 7),)
    assert followed(told, {"a": 12}) == (FollowedTime("a", 9),)


def test_a_number_at_rest_holds_nobody_behind_its_own_records() -> None:
    told = [[NumberTimes("a", 9, 9)], [NumberTimes("a", None, 8, rests=True, resting=8)]]
    assert followed(told, {"a": 7}) == (FollowedTime("a", 8),)
    assert followed(told) == (FollowedTime("a", 8),)


def test_one_at_rest_that_never_had_a_record_holds_all_until_something_was_known_before() -> None:
    told = [[NumberTimes("a", 9, 9)], [NumberTimes("a", None, None, rests=True)]]
    assert followed(told) == ()
    assert job_times(told, {}).greatest == {"a": 9}
    assert followed(told, {"a": 9}) == (FollowedTime("a", 9),)
