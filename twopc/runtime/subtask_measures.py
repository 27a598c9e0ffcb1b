"""The measures of a subtask's operators and splits, collected from what each of its parts counts anyhow."""

from __future__ import annotations

from collections.abc import Mapping

from twopc.protocol.measures import Measures, OperatorBytes, OperatorCount
from twopc.runtime.dependencies import SubtaskDependencies


def measures_of(deps: SubtaskDependencies, oldest_transaction_ms: int | None) -> Measures:
    """Return how far a subtask is, in detail."""
    timed = deps.dataflow.timed
    return Measures(
        read=_counts(deps.record_errors.seen),
        written=_counts(deps.outputs.written),
        late=_counts(timed.late()),
        lags=deps.inputs.split_lags(),
        stream_times=timed.stream_times(),
        oldest_transaction_ms=oldest_transaction_ms,
        bytes_read=_bytes(deps.inputs.bytes_read()),
        bytes_written=_bytes(deps.outputs.bytes_written()),
    )


def _counts(records: Mapping[str, int]) -> tuple[OperatorCount, ...]:
    return tuple(OperatorCount(operator, count) for operator, count in records.items())


def _bytes(counts: Mapping[str, int]) -> tuple[OperatorBytes, ...]:
    return tuple(OperatorBytes(operator, count) for operator, count in counts.items())
