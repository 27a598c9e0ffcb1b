"""Jobs to be run in memory: at module level, as users have them."""

from __future__ import annotations

from typing import Any

from twopc import Job, Json, KafkaSink, KafkaSource, String


def count(total: int | None, value: Any) -> tuple[int, dict[str, Any]]:
    """Number the values of a key."""
    total = (total or 0) + 1
    return total, {"value": value, "seen": total}


counting = Job("counting")
(
    counting.source(KafkaSource("in", key=String(), value=Json()))
    .stateful_map(count, name="count")
    .sink(KafkaSink("out", key=String(), value=Json()))
)


def halved(number: int) -> float:
    return number // (number % 7)


failing = Job("failing")
failing.source(KafkaSource("in", value=Json())).map(halved, name="halved").sink(KafkaSink("out", value=Json()))

upper = Job("upper")
upper.source(KafkaSource("in")).map(bytes.upper).sink(KafkaSink("out"))
