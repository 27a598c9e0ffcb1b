"""Interns names that come again and again, as small numbers that arrays can hold."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Gives each name the next number when it first comes; `names` is the way back."""

    def __init__(self) -> None:
        self.names: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, name: T) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number
