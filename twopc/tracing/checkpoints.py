"""The trace of each checkpoint of a process's jobs, made of their events when it has ended. Pure.

    checkpoint                             until all of it is durably committed, or it is aborted
      trigger        of each subtask       until the subtask takes it up, behind the batch that it has in hand
      snapshot       of each subtask       until it is stored
        pre-commit                         while the data loop stands still for it
        store
      completion                           from the last acknowledgement until the completion record is durable
      commit         of each subtask       until the coordinator has stored that it is done

The trace of one that recovery committed ends when the next attempt's first subtask is there. Moments are by the clock
of the coordinator, durations of a subtask by its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from twopc import events
from twopc.protocol.ids import CheckpointId
from twopc.tracing.span import Span, Value

OPEN_MAX = 100
"""How many checkpoints of a job may be under way: of more, whose end was never told, the oldest are forgotten."""

GONE = "the attempt ended before the checkpoint completed"
OVER = "the process ended before the checkpoint did"

SUBTASK = "twopc.subtask.index"
FAILURE_REASON = "twopc.checkpoint.failure_reason"
RECOVERED = "twopc.checkpoint.recovered"


@dataclass(slots=True)
class _Open:
    """One checkpoint that has not ended, and what was heard of it."""

    triggered: events.CheckpointTriggered
    acknowledged: list[events.CheckpointAcknowledged] = field(default_factory=list)
    completed: events.CheckpointCompleted | None = None
    committed: list[events.CheckpointCommitted] = field(default_factory=list)

    def ended(self, at_ms: int, error: str = "", also: Mapping[str, Value] | None = None) -> Span:
        """Return the trace, ended at this moment."""
        begun = self.triggered
        attributes: dict[str, Value] = {
            "twopc.job.name": begun.job,
            "twopc.attempt": begun.attempt,
            "twopc.checkpoint.id": begun.checkpoint_id,
            "twopc.checkpoint.kind": begun.kind.value,
            **(also or {}),
        }
        if begun.label:
            attributes["twopc.checkpoint.label"] = begun.label
        return Span("checkpoint", begun.time_ms, max(begun.time_ms, at_ms), attributes, error, tuple(self._parts()))

    def _parts(self) -> Iterator[Span]:
        for acknowledged in self.acknowledged:
            yield from self._of_subtask(acknowledged)
        if self.completed is None:
            return
        last = max((acknowledgement.time_ms for acknowledgement in self.acknowledged), default=self.triggered.time_ms)
        yield Span("completion", last, self.completed.time_ms)
        for committed in self.committed:
            yield Span("commit", self.completed.time_ms, committed.time_ms, {SUBTASK: committed.subtask})

    def _of_subtask(self, acknowledged: events.CheckpointAcknowledged) -> Iterator[Span]:
        of: dict[str, Value] = {SUBTASK: acknowledged.subtask}
        begun, stored = self.triggered.time_ms, acknowledged.time_ms
        taken_up = max(begun, stored - acknowledged.duration_ms)
        pre_committed = min(taken_up + acknowledged.pause_ms, stored)
        yield Span("trigger", begun, taken_up, of)
        parts = (Span("pre-commit", taken_up, pre_committed, of), Span("store", pre_committed, stored, of))
        yield Span("snapshot", taken_up, stored, of, children=parts)


class CheckpointTraces:
    """Used by one thread. A checkpoint of which the trigger was not heard has no trace."""

    def __init__(self) -> None:
        self._open: dict[str, dict[CheckpointId, _Open]] = {}

    def note(self, event: events.Event) -> list[Span]:
        """Take in what happened; return the traces of the checkpoints that have ended with it."""
        under_way = self._open.setdefault(event.job, {})
        match event:
            case events.CheckpointTriggered():
                under_way[event.checkpoint_id] = _Open(event)
                if len(under_way) > OPEN_MAX:
                    del under_way[min(under_way)]
            case events.CheckpointAcknowledged() if event.checkpoint_id in under_way:
                under_way[event.checkpoint_id].acknowledged.append(event)
            case events.CheckpointCompleted() if event.checkpoint_id in under_way:
                under_way[event.checkpoint_id].completed = event
            case events.CheckpointCommitted():
                _note_commit(under_way, event)
            case events.CheckpointAborted() if event.checkpoint_id in under_way:
                reason = {FAILURE_REASON: event.reason.value}
                return [under_way.pop(event.checkpoint_id).ended(event.time_ms, event.message, reason)]
            case events.CheckpointConfirmed():
                return _end_confirmed(under_way, event)
            case events.SubtaskAttached():
                return _end_recovered(under_way, event)
            case events.AttemptStarted():
                return _end_incomplete(under_way, event)
            case _:
                pass
        return []

    def end(self, now_ms: int) -> list[Span]:
        """Return the traces of those that were under way when the process ended."""
        left = [each.ended(now_ms, OVER) for under_way in self._open.values() for each in under_way.values()]
        self._open.clear()
        return left


def _note_commit(under_way: dict[CheckpointId, _Open], event: events.CheckpointCommitted) -> None:
    """A subtask's commit is of all checkpoints up to it that it had not committed."""
    for number, each in under_way.items():
        is_news = all(other.subtask != event.subtask for other in each.committed)
        if number <= event.checkpoint_id and each.completed is not None and is_news:
            each.committed.append(event)


def _end_confirmed(under_way: dict[CheckpointId, _Open], event: events.CheckpointConfirmed) -> list[Span]:
    done = [number for number, each in under_way.items() if number <= event.checkpoint_id and each.completed]
    return [under_way.pop(number).ended(event.time_ms) for number in done]


def _end_incomplete(under_way: dict[CheckpointId, _Open], event: events.AttemptStarted) -> list[Span]:
    """What an earlier attempt completed is committed before this one reads; the rest is over."""
    over = [number for number, each in under_way.items() if each.completed is None]
    return [under_way.pop(number).ended(event.time_ms, GONE) for number in over]


def _end_recovered(under_way: dict[CheckpointId, _Open], event: events.SubtaskAttached) -> list[Span]:
    done = [number for number, each in under_way.items() if each.triggered.attempt < event.attempt and each.completed]
    return [under_way.pop(number).ended(event.time_ms, also={RECOVERED: True}) for number in done]
