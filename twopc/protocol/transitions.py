"""A state machine as a table: read by people, asked by the code, walked by tests, printed in the documents.

Invariant: what is not in the table can't happen. An attempt at it gets ProtocolViolation, and nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Generic, TypeVar

from twopc.errors import ProtocolViolation

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)
T = TypeVar("T")


class Transitions(Generic[S, E, T]):
    """The transitions of `what`, by state and event, for all that may happen to it."""

    def __init__(self, what: str, rows: Mapping[tuple[S, E], T]) -> None:
        self._what = what
        self._rows = dict(rows)

    def after(self, state: S, event: E) -> T:
        """Look the cell up; raise ProtocolViolation if it is empty."""
        try:
            return self._rows[state, event]
        except KeyError:
            raise ProtocolViolation(f"{self._what} that is {state.name} can't be {event.name}") from None

    def __iter__(self) -> Iterator[tuple[S, E, T]]:
        for (state, event), result in self._rows.items():
            yield state, event, result
