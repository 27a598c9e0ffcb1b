"""Lists in messages."""

from __future__ import annotations

import pytest

from twopc.listing import listed


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "none"),
        (2, "0, 1"),
        (10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        (1000, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 990 more"),
    ],
)
def test_a_list_is_cut_after_ten(count: int, text: str) -> None:
    assert listed(range(count)) == text
