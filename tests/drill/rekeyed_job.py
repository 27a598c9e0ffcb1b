"""A job that reads what it writes itself: two inputs, their records counted by a new key, all along and in windows."""

import os

from twopc import Int, Job, Json, KafkaSink, KafkaSource, String, Tumbling

NAME = os.environ["DRILLED_JOB"]


def count(total: int | None, value: dict[str, int]) -> tuple[int, list[int]]:
    """Count the records of the key; emit the number and the count."""
    total = (total or 0) + 1
    return total, [value["n"], total]


def at_ms(value: dict[str, int]) -> int:
    """A record a second."""
    return 1_700_000_000_000 + value["n"] * 1_000


job = Job(NAME)
web = job.source(KafkaSource(f"{NAME}-web", value=Json()), timestamp=at_ms, name="web")
app = job.source(KafkaSource(f"{NAME}-app", value=Json()), timestamp=at_ms, name="app")
web.sink(KafkaSink(f"{NAME}-copies", value=Json()), name="copies")
keyed = web.merge(app, name="both").key_by(lambda value: f"id-{value['n'] % 5}", name="by-id")
keyed.stateful_map(count, state=Int(), name="count").sink(
    KafkaSink(f"{NAME}-counts", key=String(), value=Json()), name="counts"
)
windows = keyed.window(Tumbling("10s"), grace="5s").count(name="per-window")
windows.final().sink(KafkaSink(f"{NAME}-windows", key=String(), value=Json()), name="windows")
