"""Upper-case every value of topic `in` into topic `out`, a batch at a time as Arrow has it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from twopc import Job, KafkaSink, KafkaSource


def upper(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with its values, which are text, in capitals."""
    return batch.set_column(batch.schema.get_field_index("value"), "value", pc.ascii_upper(batch.column("value")))


job = Job("upper-batches")
job.source(KafkaSource("in")).map_batches(upper, value_type=pa.string()).sink(KafkaSink("out"))
