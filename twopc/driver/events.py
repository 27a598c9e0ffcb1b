"""What the driver knows of a running job: the coordinator's events, followed on a thread of their own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from twopc.driver.recovery import Recovered
from twopc.driver.stopping import Liveness
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError
from twopc.listing import listed
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_events import WHOLE_JOB, JobEvent, JobEventKind
from twopc.sink import Outcome
from twopc.source import Split

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
UNREACHABLE_SECONDS = 10.0
"""How long a start waits for the first event before it goes on without."""


@dataclass(slots=True)
class _Attempt:
    """What was seen of the current attempt."""

    number: int = 0
    completed: int = 0
    failure: JobEvent | None = None
    finished: bool = False
    records: dict[int, tuple[int, int]] = field(default_factory=dict)
    liveness: Liveness = field(default_factory=Liveness)


class EventSource(Protocol):
    """Where a job's events come from: a coordinator in this process, or a client of one elsewhere."""

    def watch(self, job: str) -> Iterator[JobEvent]:
        """Yield every event of a job from now on, its status first; a TwoPhaseCommitError breaks it off."""
        ...

    def stop_watching(self) -> None:
        """End every `watch`, for good."""
        ...


class EventWatch:
    """Follows one job's events while entered; every event goes to `on_event` too, in order, on the watching thread."""

    def __init__(self, source: EventSource, job: str, on_event: Callable[[JobEvent], None] | None) -> None:
        self._source = source
        self._job = job
        self._on_event = on_event
        self._current = _Attempt()
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._connected = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="twopc-events", daemon=True)
        self.attempts = 0
        self.completed_in_run = 0
        self.last_completed = 0

    def __enter__(self) -> EventWatch:
        self._thread.start()
        self._connected.wait(UNREACHABLE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._source.stop_watching()
        self._thread.join(5)

    @property
    def finished(self) -> bool:
        return self._current.finished

    @property
    def failure(self) -> JobEvent | None:
        return self._current.failure

    @property
    def liveness(self) -> Liveness:
        """What the subtasks of the current attempt have said lately."""
        return self._current.liveness

    @property
    def completed_in_attempt(self) -> bool:
        return self._current.completed > 0

    @property
    def records_in(self) -> int:
        return sum(records for records, _ in list(self._current.records.values()))

    @property
    def records_out(self) -> int:
        return sum(records for _, records in list(self._current.records.values()))

    def wait_for_end(self, seconds: float) -> None:
        """Give what is still on its way time to arrive: that the job has finished, or what has failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._current.finished or self._current.failure is not None, seconds)

    def attempt_started(self, attempt: AttemptId) -> None:
        """From now on, only events of this attempt say how it goes."""
        self.attempts += 1
        self._current = _Attempt(attempt)

    def recovered(self, attempt: AttemptId, found: Recovered) -> None:
        """Tell what recovery did, in the same stream as the coordinator's events."""
        for item in found.settled:
            if item.outcome is Outcome.COMMITTED:
                committable = item.committable
                self.tell(attempt, "resumed", committable.name, committable.checkpoint_id, committable.subtask)
        for name in found.lingering:
            self.tell(attempt, "lingering-aborted", name)

    def restored(self, attempt: AttemptId, checkpoint: CheckpointMetadata | None, splits: Sequence[Split]) -> None:
        """Tell from where what is read is read on."""
        if checkpoint is not None:
            starts = listed(str(split.begin) for split in splits)
            self.tell(attempt, "restored", starts, checkpoint.checkpoint_id)

    def tell(
        self,
        attempt: AttemptId,
        kind: str,
        message: str,
        checkpoint_id: CheckpointId = NO_CHECKPOINT,
        subtask: SubtaskIndex = WHOLE_JOB,
    ) -> None:
        """Tell what the driver does, in the same stream as the coordinator's events."""
        self._publish(
            JobEvent(
                job=self._job,
                attempt=attempt,
                kind=kind,
                checkpoint_id=checkpoint_id,
                subtask=subtask,
                message=message,
                time_ms=int(time.time() * 1000),
            )
        )

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                for event in self._source.watch(self._job):
                    self._connected.set()
                    self._note(event)
                    if self._current.number or event.kind == JobEventKind.ATTEMPT_STARTED:
                        # How an earlier run ended is told first, and is not this run's business.
                        self._publish(event)
                    if self._closed.is_set():
                        return
            except TwoPhaseCommitError as error:
                log.debug("the event stream broke: %s", error)
                if isinstance(error, CheckpointCorrupted):
                    # There will be no events, and an attempt's start is refused for the same reason.
                    self._connected.set()
            self._closed.wait(RETRY_SECONDS)

    def _note(self, event: JobEvent) -> None:
        current = self._current
        if event.attempt > current.number > 0:
            # Not by this driver: it would have called `attempt_started` next, and then this failure is of the past.
            event = _fenced_by(event, AttemptId(current.number))
        elif event.attempt != current.number:
            return
        with self._changed:
            current.liveness.note(event, time.monotonic())
            match event.kind:
                case "completed":
                    current.completed += 1
                    self.completed_in_run += 1
                    self.last_completed = event.checkpoint_id
                case "failed" | "fenced" if current.failure is None:
                    current.failure = event
                case "finished":
                    current.finished = True
                case "progress" if event.progress is not None:
                    current.records[event.subtask] = (event.progress.records_in, event.progress.records_out)
            self._changed.notify_all()

    def _publish(self, event: JobEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            log.exception("the on_event callback raised; the job goes on")


def _fenced_by(event: JobEvent, attempt: AttemptId) -> JobEvent:
    """Return what the event of a greater attempt means for the one that runs here."""
    return JobEvent(
        kind=JobEventKind.FENCED,
        job=event.job,
        attempt=attempt,
        time_ms=event.time_ms,
        message=f"another run of job {event.job!r} has started attempt {event.attempt}, which takes over from attempt "
        f"{attempt} of this one: this run ends, and nothing is lost. A job can have one run at a time",
    )
