"""How long a topic keeps what is written to it, by its settings: what takes output away later is told.

Nothing is refused: a topic may be meant so. Settings that nobody may see are told nothing of.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twopc.clock import date
from twopc.kafka.topics.topic_limits import CLEANUP, TYPE, limit_of

RETENTION, BYTES_KEPT, UNCLEAN = "retention.ms", "retention.bytes", "unclean.leader.election.enable"
LASTING_SETTINGS = (CLEANUP, TYPE, RETENTION, BYTES_KEPT, UNCLEAN)

SHORT_MS = 3_600_000
LITTLE_BYTES = 100_000_000
"""A topic that keeps less is told of: a reader that stands still for a while loses output."""

FIRST_RECORDS = 1_000

NEAR_MS = 60_000
"""A time that a broker's clock takes the place of is told of where it is further away."""

log = logging.getLogger(__name__)

_READERS = "A reader that stands still for longer loses output: let the topic keep it for as long as readers may"


@dataclass(frozen=True, slots=True)
class TopicLasting:
    """What a topic's settings say, None for what can't be seen, or is not limited."""

    topic: str
    cleanup: str
    stamps_itself: bool
    kept_ms: int | None
    kept_bytes: int | None
    unclean: bool

    @classmethod
    def of(cls, topic: str, settings: Mapping[str, str | None]) -> TopicLasting:
        """Take in the LASTING_SETTINGS of a topic."""
        cleanup = settings[CLEANUP] or ""
        deletes = "delete" in cleanup
        return cls(
            topic,
            cleanup,
            settings[TYPE] == "LogAppendTime",
            limit_of(settings[RETENTION]) if deletes else None,
            limit_of(settings[BYTES_KEPT]) if deletes else None,
            settings[UNCLEAN] == "true",
        )

    def warnings(self) -> Iterator[str]:
        """Yield what takes away output of any time."""
        named = f"output topic {self.topic!r} has"
        if "compact" in self.cleanup:
            yield (
                f"{named} {CLEANUP}={self.cleanup}: its brokers keep the last record of each key, and delete those "
                "before it, read or not. That is right where readers want the latest alone, and `twopc verify` judges "
                f"such a topic no more once it was compacted; else set {CLEANUP}=delete"
            )
        if self.kept_ms is not None and self.kept_ms < SHORT_MS:
            yield f"{named} {RETENTION}={self.kept_ms}: its brokers delete what is older. {_READERS}"
        if self.kept_bytes is not None and self.kept_bytes < LITTLE_BYTES:
            yield f"{named} {BYTES_KEPT}={self.kept_bytes}: its brokers keep no more of a partition. {_READERS}"
        if self.unclean:
            yield (
                f"{named} {UNCLEAN}=true: a broker that lacks committed output may become leader, and that output is "
                f"lost then. Exactly once needs {UNCLEAN}=false"
            )

    def of_times(self, stamps: Sequence[int], now_ms: int) -> str | None:
        """Say what becomes of records with these times, in milliseconds; a negative one is the time of writing."""
        given = [stamp for stamp in stamps if stamp >= 0]
        if not given:
            return None
        first = min(given)
        if self.stamps_itself:
            furthest = max(given, key=lambda stamp: abs(stamp - now_ms))
            return None if abs(furthest - now_ms) <= NEAR_MS else self._restamped(furthest)
        return None if self.kept_ms is None or first >= now_ms - self.kept_ms else self._deleted_soon(first)

    def _deleted_soon(self, first: int) -> str:
        return (
            f"records for output topic {self.topic!r} have timestamps from {date(first)} on, which is longer ago than "
            f"its {RETENTION}={self.kept_ms} ({_days(self.kept_ms or 0)}): its brokers delete them soon after they are "
            f"written, read or not. Set a longer {RETENTION}, or give them other timestamps with map_records, as "
            "record.replace(timestamp=None) for the time at which they are written"
        )

    def _restamped(self, stamp: int) -> str:
        return (
            f"records for output topic {self.topic!r} have times of their own, such as {date(stamp)}, and it has "
            f"{TYPE}=LogAppendTime: its brokers write theirs in their place, and whoever reads by event time sees "
            f"those. Set {TYPE}=CreateTime to keep the records' own"
        )


class FirstTimes:
    """The times of the first records for a topic, looked at once."""

    def __init__(self, lasting: TopicLasting) -> None:
        self._lasting = lasting
        self._left = FIRST_RECORDS

    def look_at(self, stamps: Sequence[int], now_ms: int) -> bool:
        """Warn of times with which the topic won't keep these records; return whether to look at the next ones."""
        reason = self._lasting.of_times(stamps[: self._left], now_ms)
        if reason is not None:
            log.warning("%s", reason)
        self._left -= len(stamps)
        return reason is None and self._left > 0


def _days(span_ms: int) -> str:
    return f"{span_ms / 86_400_000:.3g} days"
