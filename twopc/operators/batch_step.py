"""The step of map_batches; `batches` runs it, with Arrow, which takes a while to import: most jobs do without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twopc.operators.function_step import FunctionStep
from twopc.operators.instance import Instance, OperatorContext


@dataclass(frozen=True, slots=True)
class MapBatches(FunctionStep):
    """pyarrow.RecordBatch -> pyarrow.RecordBatch; the types are Arrow's, None for a record's own

    Each record has the key of the one that it comes from where the job says that, which is checked.
    """

    key_type: Any = None
    value_type: Any = None
    keeps_key: bool = False

    def open(self, context: OperatorContext) -> Instance:
        from twopc.operators.batches import BatchMap

        return BatchMap(self)
