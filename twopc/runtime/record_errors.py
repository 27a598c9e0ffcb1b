"""Handles the records of one subtask that go wrong, by the policies of their sources."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from twopc.column import message_of, named
from twopc.error_policy import WINDOW, ErrorPolicy, tolerant
from twopc.errors import UserCodeError
from twopc.operators import SinkOutput, Turn
from twopc.protocol.figures import Figures
from twopc.protocol.record_errors import RecordErrorCounter, RecordErrorKind
from twopc.record import RecordError
from twopc.runtime.lately_wrong import LatelyWrong
from twopc.sink import Sink
from twopc.time_marks import without_marks

log = logging.getLogger(__name__)

KINDS_MAX = 1_000
"""How many kinds of errors are told apart."""

REPORTED_MAX = 10
"""How many kinds one report of progress holds."""

MESSAGE_MAX = 1_000
"""Characters of what is said of one of them."""


class RecordErrors:
    """Used by one thread. `policies` are those of the job's sources, by operator id. Counts are of this attempt.

    `sinks` are those of the job; those of dead letters are among them.
    """

    def __init__(self, job: str, policies: Mapping[str, ErrorPolicy], sinks: Mapping[str, Sink]) -> None:
        self._counter = RecordErrorCounter()
        self._unsaid: deque[RecordErrorKind] = deque()
        self._job = job
        self._policies = dict(policies)
        self._tolerant = tolerant(policies)
        self._sinks = dict(sinks)
        self.seen: Counter[str] = Counter(dict.fromkeys(policies, 0))
        """How many records were read of each source."""
        self._lately = {source: LatelyWrong(policy.allowed) for source, policy in policies.items()}
        self._kinds: set[tuple[str, str, str]] = set()

    def read(self, turn: Turn) -> Turn:
        """Enter what was read, and return it with records whose headers can't be read as errors.

        That is so where the job goes on behind those: elsewhere nobody may ever ask for them.
        """
        for source, batch in turn.parts:
            self._lately[source].read(batch, self.seen[source])
            self.seen[source] += len(batch) + without_marks(batch.errors)
        return turn.with_headers_read(self._tolerant)

    def figures(self) -> Figures:
        """Return how often records went wrong, by source and operator."""
        return self._counter.figures()

    def take_new(self) -> tuple[RecordErrorKind, ...]:
        """Return the first records of their kind that this did not return before; the others come with the next."""
        return tuple(self._unsaid.popleft() for _ in range(min(REPORTED_MAX, len(self._unsaid))))

    def refuse(self, source: str, error: RecordError) -> Sequence[SinkOutput]:
        """Return what is written in the place of a record; raise UserCodeError where the job ends."""
        policy = self._policies[source]
        if not policy.goes_on:
            raise error.named()
        self._require_few(source, policy, error)
        self._note_first(source, policy, error)
        if policy.sink_id is None:
            self._counter.add(source, error.doing, skipped=1)
            return ()
        self._counter.add(source, error.doing, dead_letters=1)
        return (SinkOutput(policy.sink_id, policy.dead_letter(self._job, error, self._sinks[policy.sink_id])),)

    def _require_few(self, source: str, policy: ErrorPolicy, error: RecordError) -> None:
        lately = self._lately[source]
        if lately.too_many(error.row):
            raise UserCodeError(
                f"{lately.count:,} of the last {WINDOW:,} records that this subtask read of {source!r} went wrong, and "
                f"{policy} allows {policy.allowed:,}. The last: {error.named()}"
            ) from error.cause

    def _note_first(self, source: str, policy: ErrorPolicy, error: RecordError) -> None:
        raised = type(error.exception).__name__
        kind = (source, error.doing, raised)
        if kind in self._kinds or len(self._kinds) >= KINDS_MAX:
            return
        self._kinds.add(kind)
        text = f"{named(error.row)}: {error.doing} failed: {raised}: {message_of(error.exception)}: {policy}"
        log.warning("%s. No more is said here of others of its kind", text)
        self._unsaid.append(RecordErrorKind(source, error.doing, raised, text[:MESSAGE_MAX]))
