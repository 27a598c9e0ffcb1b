"""The broadcast tables of one subtask: read whole before its first record, and followed between two batches.

They are apart from all else that it reads: no splits, no positions, no place in the order of event time, and nothing of
them is in a checkpoint. So a record that goes wrong is met again at each start; it is never a dead letter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace

from twopc.context import SubtaskContext
from twopc.graph import JobDefinition
from twopc.listing import listed
from twopc.operators import Dataflow, KeyedStateStore, Turn
from twopc.operators.broadcast import BroadcastTable, feeding_broadcasts
from twopc.record import Batch
from twopc.runtime.new_splits import NewSplits
from twopc.runtime.record_errors import RecordErrors
from twopc.source import Source, Split

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1

MOST = 10_000
"""Records of one table's input that are taken between two batches of the job."""


class _Followed:
    """One input behind the end that it had: a reader of what there was, and one of each find of new splits."""

    def __init__(self, operator: str, source: Source, context: SubtaskContext, splits: list[Split]) -> None:
        self.operator = operator
        self._source = source
        self._context = context
        self.readers = [source.open_reader(context, splits)]
        self._new = NewSplits.of(source, context, splits)

    def read_new(self) -> None:
        """Begin to read what is new, from its first record."""
        if self._new is not None and (found := self._new.take()):
            log.info("broadcast table %s reads new input, too: %s", self.operator, listed(split.id for split in found))
            self.readers.append(self._source.open_reader(self._context, found))

    def close(self) -> None:
        if self._new is not None:
            self._new.close()
        for reader in self.readers:
            reader.close()


class Broadcasts:
    """Used by one thread, the one that looks into the tables."""

    def __init__(
        self,
        definition: JobDefinition,
        tables: Mapping[str, BroadcastTable],
        store: KeyedStateStore,
        record_errors: RecordErrors,
    ) -> None:
        """`store` is the subtask's; a broadcast table keeps nothing there."""
        fed = feeding_broadcasts(definition.operators)
        nodes = [operator for operator in definition.operators if operator.id in fed]
        self._flow = Dataflow(nodes, store, record_errors.refuse, tables=tables)
        self._sources = definition.broadcasts
        self._record_errors = record_errors
        self._followed: list[_Followed] = []

    def read(self, context: SubtaskContext, opened: ExitStack, reading_ends: Callable[[], bool]) -> None:
        """Read each input from its first record up to the end that it has now, and be ready to follow it from there.

        Where `reading_ends`, no record of the job will look into a table, and the rest is left. Raises
        ConfigurationError for an input that is missing, Unavailable where it can't be asked about.
        """
        for operator, source in self._sources.items():
            whole = source.from_beginning()
            splits = self._read(operator, whole, context, reading_ends)
            if splits is None:
                return
            self._followed.append(opened.enter_context(closing(_Followed(operator, whole, context, splits))))

    def follow(self) -> None:
        """Take in what has come since, without waiting for anything."""
        for followed in self._followed:
            followed.read_new()
            for reader in followed.readers:
                self._take(followed.operator, reader.poll(0.0, MOST))

    def lag(self) -> int:
        """The number of records that are left to take in, as far as known."""
        return sum(reader.lag() or 0 for followed in self._followed for reader in followed.readers)

    def _read(
        self, operator: str, source: Source, context: SubtaskContext, reading_ends: Callable[[], bool]
    ) -> list[Split] | None:
        """Take the input up to the end that it has now, and return what comes behind that.

        None where reading has ended before.
        """
        with source.open_planner(context) as planner:
            splits = planner.plan({}, bounded=True)
        with closing(source.open_reader(context, splits)) as reader:
            while not reader.finished():
                if reading_ends():
                    return None
                self._take(operator, reader.poll(POLL_SECONDS, MOST))
        return [replace(split, start=split.stop, stop=None) for split in splits]

    def _take(self, operator: str, batch: Batch | None) -> None:
        if batch is not None:
            self._flow.put(self._record_errors.read(Turn.of(operator, batch)))
            while self._flow.waits:
                self._flow.advance()
