"""What a run that gives up leaves on the brokers: nothing open, where they answer.

An open transaction hides what other writers wrote after its beginning from readers, for as long as its time-out, which
may be weeks; and nobody may start this job again soon. So the driver does what the next attempt would do before it
read: it settles what belongs to the latest completed checkpoint, and aborts the rest.
"""

from __future__ import annotations

import logging
import threading

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.attempt import AttemptFailed
from twopc.driver.recovery import recover
from twopc.errors import CheckpointCorrupted, Fenced, TransactionLost, TwoPhaseCommitError
from twopc.graph import JobDefinition
from twopc.protocol.attempts import Traces
from twopc.protocol.checkpoints import LATEST
from twopc.rpc.job_client import JobClient

log = logging.getLogger(__name__)

PATIENCE_SECONDS, HURRIED_SECONDS = 10.0, 2.0
"""How long the end of a run may wait for brokers, and one that was asked for. What comes late does no harm."""

_NOT_OURS = (Fenced, CheckpointCorrupted, TransactionLost)
"""After these another run owns the job, or a person has to decide first."""


def leave_nothing_open(
    definition: JobDefinition, settings: RunSettings, client: JobClient, failed: AttemptFailed, *, hurried: bool
) -> None:
    """Settle and abort what the failed attempt left, if it got so far as to write."""
    if not failed.submitted or isinstance(failed.error, _NOT_OURS):
        return
    work = threading.Thread(
        target=_settle_and_abort, args=(definition, settings, client, failed), name="twopc-aftermath", daemon=True
    )
    work.start()
    work.join(HURRIED_SECONDS if hurried else PATIENCE_SECONDS)


def _settle_and_abort(
    definition: JobDefinition, settings: RunSettings, client: JobClient, failed: AttemptFailed
) -> None:
    job = definition.name
    try:
        started = client.start_attempt(
            job, settings, LATEST, Traces(written=failed.attempt), restart=True, restart_of=failed.attempt
        )
        context = JobContext(job, started.attempt, settings.parallelism, settings)
        pipeline = definition.pipeline("run")
        with pipeline.sink.open_committer(context) as committer:
            recover(client, pipeline.source, committer, context, started)
        client.end_attempt(job, started.attempt, f"nothing is open; attempt {failed.attempt} failed: {failed.error}")
    except TwoPhaseCommitError as error:
        log.info("what attempt %d left open is left to the next start: %s", failed.attempt, error)
    except ValueError as error:
        # What gRPC raises on a channel that the run has closed, having waited long enough.
        log.debug("what attempt %d left open is left to the next start: %s", failed.attempt, error)
