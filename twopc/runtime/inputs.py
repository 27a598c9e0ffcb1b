"""The readers of one subtask's sources, by operator id, as one: polled in turn, so that none starves another.

A source that is bounded has its turn until its end; one that a stop can't bound has no turn any more.

A source may read what this job writes: it is of a later stage than those whose records come there. Its end is known
only when all of an earlier stage is read, written and committed, so stages end one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.record import Batch, Row
from twopc.source import SourceReader


class Inputs:
    """Used by one thread."""

    def __init__(self, readers: Mapping[str, SourceReader], stages: Mapping[str, int] | None = None) -> None:
        """`stages` has the stage of each source that is not of the first, 0."""
        self._readers = dict(readers)
        self._stages = {source: (stages or {}).get(source, 0) for source in readers}
        self.last_stage = max(self._stages.values(), default=0)
        self._turns = deque(self._readers)
        self._stopped: set[str] = set()

    def poll(self, timeout: float, most: int) -> tuple[str, Batch] | None:
        """Return up to `most` records of one source, and its id; None after `timeout` seconds without any."""
        live = [source for source in self._turns if not self._is_done(source)]
        for number, source in enumerate(live, 1):
            # Nobody waits for one source while another may have records: only the last to be asked is waited for.
            batch = self._readers[source].poll(timeout if number == len(live) else 0.0, most)
            if batch is not None and (len(batch) or batch.errors):
                self._turns.remove(source)
                self._turns.append(source)
                return source, batch
        self._turns.rotate(-1)
        return None

    def positions(self, waiting: Callable[[str], Iterable[Row]]) -> tuple[SplitPosition, ...]:
        """Return the position of every split; `waiting` gives the rows of a source that were not processed yet."""
        return tuple(
            replace(held, source=source)
            for source, reader in self._readers.items()
            for held in reader.positions(waiting(source))
        )

    def check_input(self, checkpoint_id: CheckpointId) -> None:
        """Raise unless all records so far came from the input that the splits name."""
        for reader in self._readers.values():
            reader.check_input(checkpoint_id)

    def bound(self, stage: int = 0) -> None:
        """Read sources up to this stage no further than the end that each has now; nothing more of one without any."""
        for source, reader in self._readers.items():
            if self._stages[source] <= stage and not reader.bound():
                self._stopped.add(source)

    def stages_at_end(self) -> int:
        """Return how many stages, from the first on, have nothing more to read."""
        unended = (stage for source, stage in self._stages.items() if not self._is_done(source))
        return min(unended, default=self.last_stage + 1)

    def at_end(self) -> bool:
        """Whether there is nothing more to read."""
        return all(map(self._is_done, self._readers))

    def finished(self) -> bool:
        """Whether every split was read to its stop."""
        return all(reader.finished() for reader in self._readers.values())

    def lag(self) -> int | None:
        """How many records are left to read, as far as known."""
        known = [lag for reader in self._readers.values() if (lag := reader.lag()) is not None]
        return sum(known) if known else None

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[SplitPosition]) -> None:
        """Tell the world how far a completed checkpoint went."""
        for source, reader in self._readers.items():
            reader.commit_positions(checkpoint_id, [held for held in positions if held.source == source])

    def _is_done(self, source: str) -> bool:
        return source in self._stopped or self._readers[source].finished()
