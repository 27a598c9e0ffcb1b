"""The stream time that partition numbers without records follow."""

from __future__ import annotations

from twopc.protocol.followed_times import FollowedTime, NumberTimes, followed


def test_the_least_of_the_numbers_with_records_is_followed_whichever_subtask_has_them() -> None:
    told = [[NumberTimes("a", 5, 9), NumberTimes("b", 7, 7)], [NumberTimes("a", 3, 3), NumberTimes("b", None, 1)]]
    assert followed(told) == (FollowedTime("a", 3), FollowedTime("b", 7))


def test_where_a_number_has_records_and_no_time_yet_nobody_goes_on() -> None:
    assert followed([[NumberTimes("a", 5, 5)], [NumberTimes("a", None, None, holds=True)]]) == ()


def test_where_no_number_has_records_any_more_the_greatest_of_all_is_followed() -> None:
    assert followed([[NumberTimes("a", None, 5)], [NumberTimes("a", None, 9)]]) == (FollowedTime("a", 9),)


def test_where_no_number_has_a_time_there_is_none_to_follow() -> None:
    assert followed([[NumberTimes("a", None, None)], []]) == ()
