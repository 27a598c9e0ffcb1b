"""What a topic takes of a record, by its settings: what its brokers would refuse is the error of that record.

Brokers refuse a whole request, and with it the transaction: then the job ends, and who was at fault has to be guessed.
So it does where the settings can't be seen, for what is compressed and still too long, and for a time that was read
from Kafka and is passed on, unless the topic takes less than topics do by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twopc.column import Failures
from twopc.column_rows import NO_TIMESTAMP
from twopc.kafka.letter import LARGEST_BYTES
from twopc.packed_column import Column, PackedColumn, as_list
from twopc.record import Headers

TYPE, BEFORE, AFTER = "message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
CLEANUP, LARGEST = "cleanup.policy", "max.message.bytes"
LIMIT_SETTINGS = (TYPE, BEFORE, AFTER, CLEANUP, LARGEST)

ANY_MS = 2**63 - 1
DEFAULT_AFTER_MS = 3_600_000
"""As Kafka's topics have it: whatever was read from one was no further ahead when it was written."""

BATCH_BYTES, RECORD_BYTES = 61, 7
"""What a batch of one record has beside the record, and a record beside its key, value and headers, at least."""


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The limits of one topic, None for none that is known. Times are milliseconds from the clock."""

    before_ms: int | None = None
    after_ms: int | None = None
    needs_key: bool = False
    largest: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str | None], properties: Mapping[str, Any]) -> TopicLimits:
        """Take in the LIMIT_SETTINGS of a topic.

        `properties` are those of the producer, which compresses, or refuses what is large, itself.
        """
        is_stamped = settings[TYPE] == "CreateTime"
        before, after = (limit_of(settings[name]) if is_stamped else None for name in (BEFORE, AFTER))
        largest = None if _compresses(properties) else limit_of(settings[LARGEST])
        if largest is not None and largest >= largest_record(properties):
            largest = None
        return cls(before, after, "compact" in (settings[CLEANUP] or ""), largest)

    def refusals(
        self, keys: Column, values: Column, headers: Sequence[Headers | None], stamps: Column, now_ms: int
    ) -> Failures:
        """Return what the topic would refuse, by index; `stamps` are as they are written."""
        return {
            **dict(self._without_key(keys)),
            **dict(self._too_large(keys, values, headers)),
            **dict(self._out_of_time(stamps, now_ms)),
        }

    def _without_key(self, keys: Column) -> Iterator[tuple[int, BaseException]]:
        if not self.needs_key or (isinstance(keys, PackedColumn) and keys.buffers.validity is None):
            return
        problem = (
            f"the topic has {CLEANUP}=compact and takes no record without a key: give it one with map_records, or drop "
            "it with filter_records"
        )
        for index, key in enumerate(as_list(keys)):
            if key is None:
                yield index, ValueError(problem)

    def _too_large(
        self, keys: Column, values: Column, headers: Sequence[Headers | None]
    ) -> Iterator[tuple[int, BaseException]]:
        if self.largest is None:
            return
        problem = (
            f"which the topic does not take ({LARGEST}={self.largest}): make it smaller, or let the topic take more"
        )
        for index, (key, value, own) in enumerate(zip(as_list(keys), as_list(values), headers, strict=True)):
            size = BATCH_BYTES + RECORD_BYTES + _size(key) + _size(value) + _size_of_headers(own)
            if size > self.largest:
                yield index, ValueError(f"it has {size} bytes with its key and headers, once encoded, {problem}")

    def _out_of_time(self, stamps: Column, now_ms: int) -> Iterator[tuple[int, BaseException]]:
        before, after = self.before_ms, self.after_ms
        if isinstance(stamps, PackedColumn) and before is None and (after is None or after >= DEFAULT_AFTER_MS):
            return
        earliest = NO_TIMESTAMP if before is None else now_ms - before
        latest = ANY_MS if after is None else now_ms + after
        numbers = as_list(stamps)
        if min(numbers, default=latest) >= earliest and max(numbers, default=earliest) <= latest:
            return
        for index, stamp in enumerate(numbers):
            if stamp != NO_TIMESTAMP and not earliest <= stamp <= latest:
                seconds = f"{abs(stamp - now_ms) // 1000:,} s"
                far = f"{seconds} behind the clock" if stamp < earliest else f"{seconds} ahead of the clock"
                bound = f"{BEFORE}={before}" if stamp < earliest else f"{AFTER}={after}"
                yield (
                    index,
                    ValueError(
                        f"its timestamp {stamp} is {far}, and the topic has {bound}: give it another with "
                        "map_records, as record.replace(timestamp=None) for the time at which it is written, or change "
                        "that setting"
                    ),
                )


def largest_record(properties: Mapping[str, Any]) -> int:
    """Return how many bytes the largest record has that a producer with these properties takes."""
    return int(properties.get("message.max.bytes", LARGEST_BYTES))


def _compresses(properties: Mapping[str, Any]) -> bool:
    return any(properties.get(name, "none") != "none" for name in ("compression.type", "compression.codec"))


def limit_of(written: str | None) -> int | None:
    """Return what a setting says; None where nobody may see it, or where it sets no limit: the greatest, or below 0."""
    return int(written) if written is not None and 0 <= int(written) < ANY_MS else None


def _size(data: Any) -> int:
    """Return how many bytes a key or value has; what is none, the client refuses."""
    if isinstance(data, str):
        return len(data.encode("utf-8", "surrogatepass"))
    return len(data) if isinstance(data, bytes) else 0


def _size_of_headers(headers: Any) -> int:
    pairs = headers if isinstance(headers, list | tuple) else ()
    return sum(_size(part) for pair in pairs if isinstance(pair, tuple) for part in pair)
