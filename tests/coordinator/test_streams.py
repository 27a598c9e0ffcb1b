"""What goes out on a stream, item by item or many together."""

from __future__ import annotations

import pytest

from coordinator.sessions import BATCH, Channel
from twopc.errors import Unavailable


def channel_of(*items: int) -> Channel[int]:
    channel = Channel[int]()
    for item in items:
        channel.put(item)
    return channel


def test_what_is_there_goes_out_together() -> None:
    channel = channel_of(1, 2, 3)
    channel.close()
    assert list(channel.batches()) == [[1, 2, 3]]


def test_no_more_goes_out_together_than_a_message_may_hold() -> None:
    channel = channel_of(*range(2 * BATCH + 1))
    channel.close()
    assert [len(items) for items in channel.batches()] == [BATCH, BATCH, 1]


def test_what_came_before_an_error_goes_out_before_it() -> None:
    channel = channel_of(1, 2)
    channel.close(Unavailable("the coordinator ends"))
    seen: list[int] = []
    with pytest.raises(Unavailable, match="the coordinator ends"):
        seen.extend(channel)
    assert seen == [1, 2]


def test_nothing_goes_out_after_the_end() -> None:
    channel = channel_of(1)
    channel.close()
    channel.put(2)
    assert list(channel) == [1]
