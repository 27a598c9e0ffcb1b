"""What becomes of the records of one subtask that go wrong, by the policies of their sources."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

from twopc.column import locate
from twopc.error_policy import WINDOW, ErrorPolicy
from twopc.errors import UserCodeError
from twopc.operators import SinkOutput
from twopc.record import RecordError

log = logging.getLogger(__name__)

KINDS_MAX = 1_000
"""How many kinds of errors are told apart in the log."""


class RecordErrors:
    """Used by one thread. `policies` are those of the job's sources, by operator id.

    `skipped` and `dead_letters` count the records of this attempt.
    """

    def __init__(self, job: str, policies: Mapping[str, ErrorPolicy]) -> None:
        self.skipped = self.dead_letters = 0
        self._job = job
        self._policies = dict(policies)
        self._seen: Counter[str] = Counter()
        self._lately: defaultdict[str, deque[int]] = defaultdict(deque)
        self._kinds: set[tuple[str, str, str]] = set()

    def read(self, source: str, count: int) -> None:
        """So many more records of a source were read."""
        self._seen[source] += count

    def refuse(self, source: str, error: RecordError) -> Sequence[SinkOutput]:
        """Return what is written in the place of a record; raise UserCodeError where the job ends."""
        policy = self._policies[source]
        if not policy.goes_on:
            raise error.named()
        self._require_few(source, policy, error)
        self._log_first(source, policy, error)
        if policy.sink_id is None:
            self.skipped += 1
            return ()
        self.dead_letters += 1
        return (SinkOutput(policy.sink_id, policy.dead_letter(self._job, error)),)

    def _require_few(self, source: str, policy: ErrorPolicy, error: RecordError) -> None:
        if policy.most is None:
            return
        lately, seen = self._lately[source], self._seen[source]
        lately.append(seen)
        while lately[0] <= seen - WINDOW:
            lately.popleft()
        if len(lately) > policy.most * WINDOW:
            raise UserCodeError(
                f"{len(lately):,} of the last {WINDOW:,} records that this subtask read of {source!r} went wrong, and "
                f"{policy} allows {policy.most * WINDOW:,.0f}. The last: {error.named()}"
            ) from error.cause

    def _log_first(self, source: str, policy: ErrorPolicy, error: RecordError) -> None:
        kind = (source, error.doing, type(error.exception).__name__)
        if kind in self._kinds or len(self._kinds) >= KINDS_MAX:
            return
        self._kinds.add(kind)
        log.warning(
            "record %s: %s failed: %s: %s: %s. No more is said here of others of its kind",
            locate(error.row),
            error.doing,
            type(error.exception).__name__,
            error.exception,
            policy,
        )
