"""Which cells guard a change, as marks of pytest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pytest
from _pytest.mark import ParameterSet


class Guard(Protocol):
    """A cell of any kind."""

    @property
    def guards_a_change(self) -> bool:
        """Whether every change plays it; all others guard a release."""


def tiered(cells: Iterable[Guard]) -> list[ParameterSet]:
    """The cells as parameters, each by its sentence."""
    return [pytest.param(cell, marks=() if cell.guards_a_change else pytest.mark.proof, id=str(cell)) for cell in cells]
