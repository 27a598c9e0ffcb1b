"""The job whose checkpoints stand here, as each format of them was written."""

from twopc import (
    Context,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    ListState,
    MapState,
    Processor,
    Record,
    Tumbling,
    ValueState,
)


class Seen(Processor):
    """State of every form, and a timer that is open."""

    last = ValueState(Json())
    all = ListState(Json())
    by_value = MapState(Json())

    def process(self, record: Record, context: Context) -> Record:
        text = record.value.decode()
        self.last.set(text)
        self.all.add(text)
        self.by_value.put(text, int(self.by_value.get(text) or 0) + 1)
        context.set_timer((record.timestamp or 0) + 3_600_000)
        return record

    def on_timer(self, at: int, context: Context) -> None:
        """Nothing comes of it."""


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    return (total or 0) + 1, value


job = Job("golden")
orders = job.source(KafkaSource("golden-in"))
orders.stateful_map(count, name="count").sink(KafkaSink("golden-out"))
orders.process(Seen(), name="seen").sink(KafkaSink("golden-seen"))
orders.window(Tumbling("1h")).count(name="hourly").final().map(lambda each: b"%d" % each.value).sink(
    KafkaSink("golden-hours")
)
