"""The jobs on Quix Streams: one process of them. Arguments: job, servers, source, target, name, folder, commit ms."""

from __future__ import annotations

import sys
from typing import Any

from quixstreams import Application

BYTES = {f"{part}_{way}": "bytes" for part in ("key", "value") for way in ("serializer", "deserializer")}


def count(value: bytes, state: Any) -> bytes:
    """Return how many records the key has had."""
    total = state.get("count", 0) + 1
    state.set("count", total)
    return b"%d" % total


def main() -> None:
    """Run until killed."""
    job, servers, source, target, name, folder, interval_ms = sys.argv[1:]
    app = Application(
        broker_address=servers,
        consumer_group=name,
        state_dir=folder,
        auto_offset_reset="earliest",
        auto_create_topics=True,
        processing_guarantee="exactly-once",
        commit_interval=int(interval_ms) / 1000,
        consumer_poll_timeout=0.1,
        loglevel="WARNING",
        consumer_extra_config={
            "fetch.queue.backoff.ms": 5,
            "fetch.min.bytes": 100_000,
            "fetch.message.max.bytes": 10_000_000,
            "queued.max.messages.kbytes": 262_144,
        },
        producer_extra_config={
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "batch.num.messages": 10_000,
            "queue.buffering.max.messages": 1_000_000,
        },
    )
    frame = app.dataframe(app.topic(source, **BYTES))
    frame = frame.apply(count, stateful=True) if job == "count" else frame.apply(bytes.upper)
    frame.to_topic(app.topic(target, **BYTES))
    app.run()


if __name__ == "__main__":
    main()
