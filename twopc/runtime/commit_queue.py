"""Commits, beside the data loop: one after the other, in the order of their checkpoints.

Invariant: behind a commit that failed nothing is committed. What is lost can be written again only while nothing
follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from twopc.faults.points import CrashPoint, reached
from twopc.protocol.ids import SubtaskIndex
from twopc.protocol.subtask_state import CommitPending
from twopc.runtime.outputs import Outputs


class CommitQueue:
    """Commits on an executor. `guarded` tells the loop what a piece of work raises, `done` what is committed."""

    def __init__(
        self,
        index: SubtaskIndex,
        outputs: Outputs,
        executor: Executor,
        guarded: Callable[[Callable[[], None]], None],
        done: Callable[[CommitPending], None],
    ) -> None:
        self._index = index
        self._outputs = outputs
        self._executor = executor
        self._guarded = guarded
        self._done = done
        self._failed = False

    def begin(self, work: CommitPending) -> None:
        """Begin to commit all that is due."""
        self._executor.submit(self._guarded, lambda: self._commit(work))

    def _commit(self, work: CommitPending) -> None:
        checkpoint_id = work.proof.checkpoint_id
        reached(CrashPoint.BEFORE_COMMIT, checkpoint=checkpoint_id, subtask=self._index)
        if self._failed:
            return
        try:
            for entry in work.due:
                for number, committable in enumerate(entry.committables):
                    if number:
                        reached(CrashPoint.BETWEEN_COMMITS, checkpoint=checkpoint_id, subtask=self._index)
                    self._outputs.commit(committable, work.proof)
        except BaseException:
            self._failed = True
            raise
        reached(CrashPoint.AFTER_COMMIT, checkpoint=checkpoint_id, subtask=self._index)
        self._done(work)
