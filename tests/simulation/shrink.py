"""Makes a failing run small: with as few strikes, records and subtasks as still break the same invariant.

A run is given by a `Case`, so a small one is played again by its case alone. The search is greedy (delta debugging over
the list of strikes, then one simplification after the other) and ends after so many tries: small, not the smallest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tests.simulation.dice import Strike
from tests.simulation.faults import Faults, draw
from tests.simulation.simulate import Result, simulate
from twopc.faults.points import CrashPoint

MOST_TRIES = 600
_PLAIN: dict[str, Any] = {
    "network_delay_ms": 0,
    "prepare_ms": 0,
    "kill_delay_ms": 0,
    "last_producer_epoch": 32_766,
    "embedded": False,
    "most_subtasks": 1,
    "other_sizes": (),
    "sinks": ("out",),
}
"""What a run is simpler with: no delays, one subtask, one source and one sink, processes of their own."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run: what its seed draws, or only these strikes."""

    seed: int
    faults: Faults
    only: frozenset[Strike] | None = None

    def play(self, *, keeps_trace: bool = False) -> Result:
        return simulate(self.seed, faults=self.faults, only=self.only, keeps_trace=keeps_trace)

    def to_json(self) -> str:
        """All that is needed to play it again, on one line: the faults that differ from those the seed draws."""
        drawn, own = asdict(draw(self.seed)), asdict(self.faults)
        changed = {name: getattr(value, "name", value) for name, value in own.items() if value != drawn[name]}
        only = None if self.only is None else [str(strike) for strike in sorted(self.only)]
        return json.dumps({"seed": self.seed, "faults": changed, "only": only})

    @classmethod
    def from_json(cls, text: str) -> Case:
        body = json.loads(text)
        changed = dict(body["faults"])
        unknown = set(changed) - {field.name for field in fields(Faults)}
        if unknown:
            raise ValueError(f"there are no faults called {', '.join(sorted(unknown))}")
        if "aimed_at" in changed:
            changed["aimed_at"] = CrashPoint[changed["aimed_at"]]
        changed = {name: tuple(value) if isinstance(value, list) else value for name, value in changed.items()}
        only = None if body["only"] is None else frozenset(map(Strike.parse, body["only"]))
        return cls(int(body["seed"]), replace(draw(int(body["seed"])), **changed), only)


def invariant_of(violation: str) -> str:
    """Which invariant was broken, without the details of how."""
    return violation.partition(":")[0]


def shrink(case: Case, most_tries: int = MOST_TRIES) -> Case:
    """Return a smaller case that breaks the same invariant first; the case itself if it breaks none."""
    result = case.play()
    if not result.violations:
        return case
    search = _Search(invariant_of(result.violations[0]), most_tries)
    smaller = replace(case, only=frozenset(result.strikes))
    if not search.still_fails(smaller):
        return case
    before = None
    while before != smaller:
        before = smaller
        smaller = search.fewer_strikes(smaller)
        smaller = search.simpler(smaller)
    return smaller


class _Search:
    """Tries smaller cases until there are no more tries."""

    def __init__(self, invariant: str, tries: int) -> None:
        self._invariant = invariant
        self._tries = tries

    def still_fails(self, case: Case) -> bool:
        if self._tries <= 0:
            return False
        self._tries -= 1
        violations = case.play().violations
        return bool(violations) and invariant_of(violations[0]) == self._invariant

    def fewer_strikes(self, case: Case) -> Case:
        """Leave out parts of the list, ever smaller ones, as long as it fails without them."""
        strikes = sorted(case.only or ())
        size = max(1, len(strikes) // 2)
        while strikes:
            start = 0
            while start < len(strikes):
                rest = strikes[:start] + strikes[start + size :]
                if self.still_fails(replace(case, only=frozenset(rest))):
                    strikes = rest
                else:
                    start += size
            if size == 1:
                break
            size = max(1, size // 2)
        return replace(case, only=frozenset(strikes))

    def simpler(self, case: Case) -> Case:
        """Take over every simplification with which it still fails."""
        for faults in _simplifications(case.faults):
            candidate = replace(case, faults=replace(case.faults, **faults))
            if candidate != case and self.still_fails(candidate):
                case = candidate
        return case


def _simplifications(faults: Faults) -> Iterator[dict[str, Any]]:
    """Changes to a run that make it simpler, the greatest first."""
    for sizes in ((1,), (2,), (faults.sizes[0],), tuple(min(2, size) for size in faults.sizes)):
        yield {"sizes": sizes}
    yield {"most_subtasks": 2}
    for name, value in _PLAIN.items():
        yield {name: value}
