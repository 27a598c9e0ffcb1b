"""The ends of faults that last: who sleeps wakes again, what is away comes back, each when its time has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Reversals:
    """Actions that end a fault, each done once: when it is due, or when all faults are to end."""

    _due: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """End a fault so many seconds from now."""
        self._due.append((time.monotonic() + seconds, action))

    def run(self, *, everything: bool = False) -> None:
        """End what has lasted long enough, or everything."""
        now = time.monotonic()
        due = [entry for entry in self._due if everything or entry[0] <= now]
        for entry in due:
            self._due.remove(entry)
            entry[1]()
