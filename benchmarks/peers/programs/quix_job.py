"""The jobs on Quix Streams: one process of them.

Arguments: job, servers, source, target, a second topic to read, the topic of dead letters, name, folder, commit ms.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import orjson
from quixstreams import Application

BYTES = {f"{part}_{way}": "bytes" for part in ("key", "value") for way in ("serializer", "deserializer")}


def count(value: bytes, state: Any) -> bytes:
    """Return how many records the key has had."""
    total = state.get("count", 0) + 1
    state.set("count", total)
    return b"%d" % total


def named(value: bytes, name: str) -> bytes:
    """Return the number and the name."""
    return value[:12] + b" " + name.encode()


def both(value: str, other: str) -> bytes:
    """Return the two numbers."""
    return f"{value[:12]} {other}".encode()


def halved(value: bytes) -> tuple[bytes | None, bytes]:
    """Return JSON with a field more, None where it can't be read; and the value as it was."""
    try:
        body = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None, value
    body["half"] = body["n"] // 2
    return orjson.dumps(body), value


def output(job: str, frame: Any, app: Application, second: str, dead: str) -> Any:
    """Return what a job makes of its input."""
    match job:
        case "count":
            return frame.apply(count, stateful=True)
        case "rekeyed_count":
            return frame.group_by(lambda value: value[9:12], name="rekeyed", **BYTES).apply(count, stateful=True)
        case "windowed_count":
            windows = frame.tumbling_window(10_000, grace_ms=0, name="windows").count()
            told = windows.final(closing_strategy="partition")
            return told.apply(lambda window: b"%d %d" % (window["start"], window["value"]))
        case "table_join":
            names = app.dataframe(app.topic(second, **BYTES)).apply(bytes.decode)
            return frame.join_asof(names, how="inner", on_merge=named)
        case "interval_join":
            # Its state holds JSON, so values are text there.
            others = app.dataframe(app.topic(second, **BYTES)).apply(bytes.decode)
            half = timedelta(milliseconds=500)
            texts = frame.apply(bytes.decode)
            return texts.join_interval(others, how="inner", on_merge=both, backward_ms=half, forward_ms=half)
        case "dead_letters":
            pairs = frame.apply(halved)
            pairs.filter(lambda pair: pair[0] is None).apply(lambda pair: pair[1]).to_topic(app.topic(dead, **BYTES))
            return pairs.filter(lambda pair: pair[0] is not None).apply(lambda pair: pair[0])
        case _:
            return frame.apply(bytes.upper)


def main() -> None:
    """Run until killed."""
    job, servers, source, target, second, dead, name, folder, interval_ms = sys.argv[1:]
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
    output(job, frame, app, second, dead).to_topic(app.topic(target, **BYTES))
    app.run()


if __name__ == "__main__":
    main()
