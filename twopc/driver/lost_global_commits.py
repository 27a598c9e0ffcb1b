"""The global commits of a recovery, and what it does where output of a checkpoint before the latest is lost there.

Checkpoints have completed behind that one, so nothing can be written again: a person accepts the loss by name, or the
job stays as it is. Of the latest checkpoint `twopc.driver.lost_transactions` decides before.
"""

from __future__ import annotations

import logging

from twopc.context import JobContext
from twopc.driver.actions import CommitGlobally, FindGlobalCommit, Settle, SettleLoss
from twopc.driver.control import EndOf
from twopc.driver.effects import Log, Script, do
from twopc.driver.lost_transactions import accepted
from twopc.errors import GlobalCommitFailed, TransactionLost
from twopc.sink import Outcome, Settled


def committed_globally(context: JobContext) -> Script[None]:
    """Commit what is outstanding, the oldest checkpoint first; raise TransactionLost where output of one is gone."""
    # That of an attempt before may still be under way in this process.
    yield EndOf(CommitGlobally)
    while True:
        try:
            return (yield from do(CommitGlobally(context)))
        except GlobalCommitFailed as error:
            if not error.is_loss:
                raise
            yield from _past_loss(context, error)


def _past_loss(context: JobContext, error: GlobalCommitFailed) -> Script[None]:
    """Settle the loss that a person has accepted, so that less is to be committed; else raise what says how."""
    due = yield from do(FindGlobalCommit(context))
    settled = [] if due is None else (yield from do(Settle(due.committables, frozenset())))
    lost = [settlement for settlement in settled if settlement.outcome is Outcome.LOST]
    if due is None or not lost:
        # Whoever commits says that it is gone, and whoever settles does not: nobody may give it up on that.
        raise error
    names = tuple(settlement.committable.name for settlement in lost)
    if not accepted(context).issuperset(names):
        raise TransactionLost(
            f"{len(names)} pre-committed transaction(s) of completed checkpoint {due.checkpoint_id} can't be committed "
            "globally any more, and nothing later is committed before them. Later checkpoints have completed, so they "
            f"can't be written again by itself. Lost: {_evidence(lost)}. To go on without that output: "
            f"--accept-loss {','.join(names)}"
        ) from error
    message = f"accepted, by --accept-loss. Lost: {_evidence(lost)}"
    yield SettleLoss(context, due.checkpoint_id, names, {}, message)
    yield Log(logging.WARNING, f"the loss of output of checkpoint {due.checkpoint_id} is {message}")


def _evidence(lost: list[Settled]) -> str:
    return "; ".join(f"{settled.committable.name}: {settled.evidence}" for settled in lost)
