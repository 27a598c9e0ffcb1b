"""A column of which most is coded by one call, and the rest one by one: what that call does not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twopc.column import ColumnError, map_part

Ahead = Callable[[list[Any], int], list[Any]]
"""Returns what comes of the elements of a column from an index on, up to the first that it does not take."""


def code_ahead(ahead: Ahead, single: Callable[[Any], Any], column: list[Any]) -> list[Any]:
    """Return the result for each element, by `single` for those at which `ahead` stops.

    Raise ColumnError for the first on which `single` raises.
    """
    results = ahead(column, 0)
    while (at := len(results)) < len(column):
        coded, cause = map_part(single, column[at : at + 1])
        if cause is not None:
            raise ColumnError(at, cause, results) from cause
        results += coded
        results += ahead(column, at + 1)
    return results
