"""The figures of a subtask, collected from what each of its parts counts anyhow."""

from __future__ import annotations

from twopc.protocol.figures import (
    BATCH_RECORDS,
    BUSY_TIME,
    BYTES_IN,
    BYTES_OUT,
    LATE_RECORDS,
    OLDEST_TRANSACTION,
    OPEN_WINDOWS,
    OPERATOR_BUSY_TIME,
    RECORDS_IN,
    RECORDS_OUT,
    SPLIT_LAG,
    STREAM_TIME,
    TABLE_ROWS,
    Figures,
)
from twopc.runtime.batch_size import BatchSize
from twopc.runtime.dependencies import SubtaskDependencies


def figures_of(deps: SubtaskDependencies, batches: BatchSize, oldest_transaction_ms: int | None) -> Figures:
    """Return how far a subtask is, in detail."""
    timed = deps.dataflow.timed
    counted = (
        RECORDS_IN.by_operator(deps.record_errors.seen),
        RECORDS_OUT.by_operator(deps.outputs.written),
        BYTES_IN.by_operator(deps.inputs.bytes_read()),
        BYTES_OUT.by_operator(deps.outputs.bytes_written()),
        LATE_RECORDS.by_operator(timed.late()),
        OPEN_WINDOWS.by_operator(timed.open_windows()),
        TABLE_ROWS.by_operator(deps.dataflow.table_rows()),
        STREAM_TIME.of(((operator, str(number)), at) for (operator, number), at in timed.stream_times().items()),
        OLDEST_TRANSACTION.of([((), oldest_transaction_ms)]),
        BUSY_TIME.of([((), round(batches.busy_seconds * 1_000))]),
        OPERATOR_BUSY_TIME.by_operator(deps.dataflow.busy.milliseconds()),
        BATCH_RECORDS.of([((), batches.records)]),
        SPLIT_LAG.of(deps.inputs.split_lags().items()),
    )
    return {**dict(counted), **deps.record_errors.figures()}
