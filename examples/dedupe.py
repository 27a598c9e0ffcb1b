"""Payments arrive several times; let the first of each id through, and forget an id after a day of event time."""

from collections.abc import Iterator

from twopc import Context, Job, Json, KafkaSink, KafkaSource, Processor, Record, ValueState


class FirstOfId(Processor):
    """Its state is by id, which `key_by` made the key."""

    seen = ValueState(Json(), ttl="24h")

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        if self.seen.get() is None:
            self.seen.set(record.timestamp)
            yield record


job = Job("dedupe")
(
    job.source(KafkaSource("payments", value=Json()))
    .key_by(lambda payment: payment["id"], name="by-id")
    .process(FirstOfId(), name="first-of-id")
    .sink(KafkaSink("payments-once", value=Json()))
)
