"""A reader that does what another does: drills change how one polls, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.record import Batch, Row
from twopc.source import SourceReader


class DelegatingReader(SourceReader):
    """Forwards every call to `reader`."""

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader

    def poll(self, timeout: float, most: int) -> Batch | None:
        return self.reader.poll(timeout, most)

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return self.reader.positions(waiting)

    def check_input(self, checkpoint_id: CheckpointId) -> None:
        self.reader.check_input(checkpoint_id)

    def bound(self) -> bool:
        return self.reader.bound()

    def finished(self) -> bool:
        return self.reader.finished()

    def caught_up(self) -> frozenset[str] | None:
        return self.reader.caught_up()

    def pause(self, splits: frozenset[str]) -> bool:
        return self.reader.pause(splits)

    def lag(self) -> int | None:
        return self.reader.lag()

    def split_lags(self) -> Mapping[str, int]:
        return self.reader.split_lags()

    def bytes_read(self) -> int | None:
        return self.reader.bytes_read()

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[SplitPosition]) -> None:
        self.reader.commit_positions(checkpoint_id, positions)

    def close(self) -> None:
        self.reader.close()
