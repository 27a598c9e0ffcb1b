"""The cleanup of a run that gives up: it leaves nothing open on the brokers, where they answer.

An open transaction hides what other writers wrote after its beginning from readers, for as long as its time-out, which
may be weeks; and nobody may start this job again soon. So the driver does what the next attempt would do before it
read: it settles what belongs to the latest completed checkpoint, and aborts the rest.
"""

from __future__ import annotations

import logging

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.actions import EndAttempt, OpenCommitter, StartAttempt
from twopc.driver.attempt import Failure
from twopc.driver.attempt_end import closing_committer
from twopc.driver.control import AnswerTimeout, StopWanted, within
from twopc.driver.effects import Log, Script, do
from twopc.driver.recovery import recovery
from twopc.errors import CheckpointCorrupted, Fenced, TransactionLost, TwoPhaseCommitError
from twopc.protocol.attempts import Traces
from twopc.protocol.checkpoints import LATEST

PATIENCE_SECONDS, HURRIED_SECONDS = 10.0, 2.0
"""How long the end of a run may wait for brokers, and one that was asked for. What comes late does no harm."""

_NOT_OURS = (Fenced, CheckpointCorrupted, TransactionLost)
"""After these another run owns the job, or a person has to decide first."""


def leave_nothing_open(job: str, settings: RunSettings, failed: Failure) -> Script[None]:
    """Settle and abort what the failed attempt left, if it got so far as to write."""
    if not failed.submitted or isinstance(failed.error, _NOT_OURS):
        return
    hurried = yield from do(StopWanted())
    try:
        patience = HURRIED_SECONDS if hurried else PATIENCE_SECONDS
        yield from within(patience, closing_committer(_settle_and_abort(job, settings, failed)))
    except (TwoPhaseCommitError, AnswerTimeout) as error:
        why = str(error) or "no answer in time"
        yield Log(logging.INFO, f"what attempt {failed.attempt} left open is left to the next start: {why}")


def _settle_and_abort(job: str, settings: RunSettings, failed: Failure) -> Script[None]:
    before = JobContext(job, failed.attempt, settings.parallelism, settings)
    started = yield from do(StartAttempt(before, LATEST, Traces(written=failed.attempt), restart=True))
    context = JobContext(job, started.attempt, settings.parallelism, settings)
    yield OpenCommitter(context)
    yield from recovery(context, started)
    yield EndAttempt(context, f"nothing is open; attempt {failed.attempt} failed: {failed.error}")
