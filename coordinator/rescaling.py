"""The fate of a request for another number of subtasks, as its asker sees it in the events of the job."""

from __future__ import annotations

from collections.abc import Iterable

from twopc import events
from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.rpc.redaction import redact


def rescaled(
    attempt: AttemptId, parallelism: int, request_id: str, seen: Iterable[events.CoordinatorEvent]
) -> tuple[AttemptId, CheckpointId]:
    """Return the attempt behind this one, once it runs with so many subtasks, and what it has restored.

    Raises ConfigurationError where they can't run, Unavailable where it is not known whether they will.
    """
    newest, restored = attempt, NO_CHECKPOINT
    attached: set[SubtaskIndex] = set()
    for event in seen:
        match event:
            case events.RescaleRefused(message=message) if event.request_id == request_id:
                raise ConfigurationError(redact(message))
            case events.RescaleRequested() if event.request_id != request_id:
                raise Unavailable(f"somebody else wants {event.parallelism} subtasks since")
            case events.AttemptStarted():
                newest, restored, attached = event.attempt, event.restored, set()
            case events.SubtaskAttached() if newest > attempt:
                attached.add(event.subtask)
                if len(attached) == parallelism:
                    return newest, restored
            case events.AttemptFailed(message=message) if event.attempt == attempt:
                raise Unavailable(f"the attempt failed first: {redact(message)}; ask again when the job runs")
            case events.AttemptFailed(message=message) if not event.restartable:
                raise Unavailable(f"the next attempt failed: {redact(message)}")
            case events.JobFinished():
                raise Unavailable("the job has finished meanwhile")
    raise Unavailable(f"{parallelism} subtasks did not run in time: they may still start; twopc jobs show tells")
