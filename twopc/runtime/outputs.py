"""The transaction groups of one subtask's sinks as one: they pre-commit and commit by the same checkpoints.

Invariant: what one group has pre-committed is known to the caller, though another declines the same checkpoint: it is
committed with the next one, as what was pre-committed for a checkpoint that is aborted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from twopc.errors import TwoPhaseCommitError
from twopc.operators import SinkOutput
from twopc.protocol.facts import Committable, KnownOutput
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import RecordError, RecordsRefused
from twopc.sink import PreCommit
from twopc.transaction_group import GroupWriter

log = logging.getLogger(__name__)


def fail(error: RecordError) -> Iterable[SinkOutput]:
    """End the attempt at the first record that a sink can't write."""
    raise error.named()


class Outputs:
    """The data loop calls it, all but `commit`, which the commit thread calls."""

    def __init__(self, groups: Sequence[GroupWriter], earlier: Iterable[KnownOutput] = ()) -> None:
        """`earlier` is what the restored checkpoint has of outputs, by one subtask or several."""
        self._groups = tuple(groups)
        self._earlier = {(output.group, output.name): output for output in earlier}
        self._writers = {group.id: group.writer for group in groups}
        self._global = {group.id for group in groups if group.is_global}
        self.written: Counter[str] = Counter(dict.fromkeys((sink for group in groups for sink in group.write), 0))
        """How many records each sink was given in this attempt."""
        self._write = {sink: write for group in groups for sink, write in group.write.items()}

    def bytes_written(self) -> Mapping[str, int]:
        """The bytes of the values that each sink wrote; sinks that don't count are left out."""
        return {
            sink: count
            for group in self._groups
            for sink, count in zip(group.write, group.writer.bytes_written(), strict=False)
        }

    @property
    def open_transaction(self) -> str | None:
        """The names of the open transactions, for people; None where none is open."""
        names = [name for writer in self._writers.values() if (name := writer.open_transaction) is not None]
        return ", ".join(names) or None

    def begin(self) -> None:
        """Open a transaction in every group that has none."""
        for writer in self._writers.values():
            if writer.open_transaction is None:
                writer.begin()

    def write(self, outputs: Iterable[SinkOutput], refuse: Callable[[RecordError], Iterable[SinkOutput]] = fail) -> int:
        """Write what came out of the graph; return how many records were written.

        What a sink can't write, `refuse` is asked about: it returns what is written instead, which must be possible.
        """
        written = 0
        refused: list[RecordError] = []
        for output in outputs:
            try:
                count = self._write[output.sink](output.batch)
            except RecordsRefused as error:
                count = error.written
                refused += error.errors
            self.written[output.sink] += count
            written += count
        for each in refused:
            written += self._write_instead(refuse(each))
        return written

    def mark(self, marks: Iterable[SinkOutput]) -> None:
        """Write marks of time, which count as no records."""
        try:
            for output in marks:
                self._write[output.sink](output.batch)
        except RecordsRefused as error:
            raise error.errors[0].named() from error

    def _write_instead(self, outputs: Iterable[SinkOutput]) -> int:
        try:
            return sum(self._write_one(output) for output in outputs)
        except RecordsRefused as error:
            raise error.errors[0].named() from error

    def _write_one(self, output: SinkOutput) -> int:
        count = self._write[output.sink](output.batch)
        self.written[output.sink] += count
        return count

    def pre_commit(self, request: PreCommit, done: Callable[[Committable], None]) -> None:
        """Pre-commit the open transaction of every group; `done` is told each that held something, when it is durable.

        Raises what the first raises that can't be pre-committed.
        """
        is_sole = len(self._writers) == 1
        for group, writer in self._writers.items():
            committable = writer.pre_commit(request)
            if committable is not None:
                done(replace(committable, group=group, is_global=group in self._global, is_sole=is_sole))

    def known(self) -> list[KnownOutput]:
        """Return every output as its writer knows it."""
        return [
            replace(output, group=group)
            for group, writer in self._writers.items()
            for output in writer.known_outputs([known for known in self._earlier.values() if known.group == group])
        ]

    def commit(self, committable: Committable, proof: Complete) -> None:
        """Commit what was pre-committed."""
        self._writers[committable.group].commit(committable, proof)

    def release(self, completed: CheckpointId) -> None:
        """Everything up to this checkpoint is committed and confirmed."""
        for writer in self._writers.values():
            writer.release(completed)

    def abort(self) -> None:
        """Abort the open transactions only: completed checkpoints promise what is pre-committed."""
        for writer in self._writers.values():
            try:
                writer.abort()
            except TwoPhaseCommitError as error:
                log.debug("the open transaction could not be aborted; the next attempt will: %s", error)
            except Exception:
                log.warning("the open transaction could not be aborted; the next attempt will", exc_info=True)
