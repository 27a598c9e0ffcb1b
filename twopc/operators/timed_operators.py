"""The operators of a subtask that have a stream time by partition number, at which something may be due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from twopc.operators.busy_time import BusyTime
from twopc.operators.instance import Instance, TimedInstance
from twopc.operators.result import Result
from twopc.operators.stored_numbers import total

Passed = Iterator[tuple[str, Result]]
"""The results of passing time: of which operator, and what, one after the other."""


class TimedOperators:
    """In topological order. `sources` has those from which records come to each; `numbers` are kept here."""

    def __init__(
        self,
        instances: Mapping[str, Instance],
        sources: Mapping[str, frozenset[str]],
        numbers: Iterable[int],
        busy: BusyTime,
    ) -> None:
        self.sources, self._busy = sources, busy
        self._operators = {key: instance for key, instance in instances.items() if isinstance(instance, TimedInstance)}
        self._numbers = sorted(numbers)
        self._drained: set[str] = set()

    def drain(self, sources: Collection[str]) -> Passed:
        """Let time pass, once for each operator behind these sources alone, until nothing waits for it."""
        for key, operator in self._behind(sources):
            if key not in self._drained:
                self._drained.add(key)
                drain = self._busy.of(key, operator.drain)
                for number in self._numbers:
                    yield key, drain(number)

    def pass_over(self, sources: Collection[str]) -> None:
        """Let no drain that comes later reach the operators behind these sources alone."""
        self._drained.update(key for key, _ in self._behind(sources))

    def pass_time(self, sources: Collection[str], to: int) -> Passed:
        """Let the stream time of the operators behind these sources alone reach this."""
        for key, operator in self._behind(sources):
            pass_time = self._busy.of(key, operator.pass_time)
            for number in self._numbers:
                yield key, pass_time(number, to)

    def follow(self, others: Iterable[tuple[str, int, int]]) -> Passed:
        """Let the stream time of each of these operators and partition numbers reach this."""
        for key, number, to in others:
            yield key, self._busy.of(key, self._operators[key].pass_time)(number, to)

    @property
    def keys(self) -> Collection[str]:
        """The ids of all of them."""
        return self._operators.keys()

    def behind(self, sources: Collection[str]) -> list[str]:
        """Return the operators behind these sources alone."""
        return [key for key in self._operators if self.sources[key].issubset(sources)]

    def idle_ms(self) -> Mapping[str, int]:
        """For how long a number may have no records before it follows others, of the operators that say so."""
        return {key: idle for key, operator in self._operators.items() if (idle := operator.idle_ms) is not None}

    @property
    def stream_time(self) -> int | None:
        """The greatest of any operator and partition number here; None before any."""
        return max(self.stream_times().values(), default=None)

    def stream_times(self) -> Mapping[tuple[str, int], int]:
        """The stream time of every operator and partition number here that has one, in Unix milliseconds."""
        return {
            (key, number): time
            for key, operator in self._operators.items()
            for number in self._numbers
            if (time := operator.stream_time(number)) is not None
        }

    def open_windows(self) -> Mapping[str, int]:
        """The number of open windows here, of operators that have some and know how many."""
        if not self._numbers:
            return {}
        counts = {
            key: total([operator.open_windows(number) for number in self._numbers])
            for key, operator in self._operators.items()
        }
        return {key: count for key, count in counts.items() if count is not None}

    def late(self) -> Mapping[str, int]:
        """The number of records of this attempt that came too late, by window."""
        return {key: late for key, operator in self._operators.items() if (late := operator.late) is not None}

    def _behind(self, sources: Collection[str]) -> list[tuple[str, TimedInstance]]:
        return [(key, self._operators[key]) for key in self.behind(sources)]
