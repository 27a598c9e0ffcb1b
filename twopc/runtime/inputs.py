"""The readers of one subtask's sources, by operator id, as one: polled in turn, so that none starves another.

A source that is bounded has its turn until its end; one that a stop can't bound has no turn any more.

Sources whose records meet by key have their turn together, in the order of event time (`runtime.event_time_order`):
what is held of one was read and is not processed.

A source may read what this job writes: it is of a later stage than those whose records come there. Its end is known
only when all of an earlier stage is read, written and committed, so stages end one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from twopc.operators import Turn
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.record import Row
from twopc.runtime.event_time_order import EventTimeOrder
from twopc.source import SourceReader


class Inputs:
    """Used by one thread."""

    def __init__(
        self,
        readers: Mapping[str, SourceReader],
        stages: Mapping[str, int] | None = None,
        orders: Sequence[EventTimeOrder] = (),
    ) -> None:
        """`stages` has the stage of each source that is not of the first, 0; `orders` are of those that meet."""
        self._readers = dict(readers)
        self._stages = {source: (stages or {}).get(source, 0) for source in readers}
        self.last_stage = max(self._stages.values(), default=0)
        self._orders = {source: order for order in orders for source in order.sources}
        alone = ((source,) for source in readers if source not in self._orders)
        self._turns = deque((*(order.sources for order in orders), *alone))
        self._stopped: set[str] = set()

    def poll(self, timeout: float, most: int) -> Turn | None:
        """Return up to `most` records whose turn it is; None after `timeout` seconds without any."""
        live = [sources for sources in self._turns if not all(map(self._is_done, sources))]
        for number, sources in enumerate(live, 1):
            # Nobody waits for one source while another may have records: only the last to be asked is waited for.
            polled = self._poll(sources[0], timeout if number == len(live) else 0.0, most)
            if polled is not None:
                self._turns.remove(sources)
                self._turns.append(sources)
                return polled
        self._turns.rotate(-1)
        return None

    def positions(self, waiting: Callable[[str], Iterable[Row]]) -> tuple[SplitPosition, ...]:
        """Return the position of every split; `waiting` gives the rows of a source that were not processed yet."""
        return tuple(
            replace(held, source=source)
            for source, reader in self._readers.items()
            for held in reader.positions(chain(waiting(source), self._first_held(source)))
        )

    def read_positions(self) -> tuple[SplitPosition, ...]:
        """Return how far every split is read, whatever of it was processed."""
        return tuple(
            replace(held, source=source) for source, reader in self._readers.items() for held in reader.positions(())
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

    def up_to(self, stages: int) -> frozenset[str]:
        """Return the sources of so many stages, from the first on."""
        return frozenset(source for source, stage in self._stages.items() if stage < stages)

    def at_end(self) -> bool:
        """Whether there is nothing more to read."""
        return all(map(self._is_done, self._readers))

    def finished(self) -> bool:
        """Whether every split was read to its stop."""
        return all(reader.finished() and not self._held(source) for source, reader in self._readers.items())

    def lag(self) -> int | None:
        """The number of records that are left to read, as far as known."""
        known = [lag for reader in self._readers.values() if (lag := reader.lag()) is not None]
        return sum(known) + sum(map(self._held, self._orders)) if known else None

    def split_lags(self) -> Mapping[tuple[str, str], int]:
        """The lag by source and split, without the records that are held of it."""
        return {
            (source, split): lag
            for source, reader in self._readers.items()
            for split, lag in reader.split_lags().items()
        }

    def caught_up(self) -> Mapping[str, frozenset[str]]:
        """The splits of each source of which nothing is left to read just now, of sources that know."""
        known = {source: reader.caught_up() for source, reader in self._readers.items()}
        return {source: splits for source, splits in known.items() if splits is not None}

    def over(self) -> frozenset[str]:
        """The sources of which nothing more will be read or is held."""
        return frozenset(filter(self._is_done, self._readers))

    def bytes_read(self) -> Mapping[str, int]:
        """The bytes of the values that were read of each source; sources that don't count are left out."""
        counts = {source: reader.bytes_read() for source, reader in self._readers.items()}
        return {source: count for source, count in counts.items() if count is not None}

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[SplitPosition]) -> None:
        """Tell the world how far a completed checkpoint went."""
        for source, reader in self._readers.items():
            reader.commit_positions(checkpoint_id, [held for held in positions if held.source == source])

    def _poll(self, source: str, timeout: float, most: int) -> Turn | None:
        if (order := self._orders.get(source)) is not None:
            return order.poll(timeout, most, self._is_over)
        batch = self._readers[source].poll(timeout, most)
        return Turn.of(source, batch) if batch is not None and (len(batch) or batch.errors) else None

    def _is_done(self, source: str) -> bool:
        return self._is_over(source) and not self._held(source)

    def _is_over(self, source: str) -> bool:
        """Whether nothing more of a source will be read; records of it may be held."""
        return source in self._stopped or self._readers[source].finished()

    def _held(self, source: str) -> int:
        return self._orders[source].held(source) if source in self._orders else 0

    def _first_held(self, source: str) -> Iterable[Row]:
        return self._orders[source].first_rows(source) if source in self._orders else ()
