"""What happens to records between source and sink: steps as descriptions, and the chain that runs them on batches."""

from twopc.operators.chain import Chain
from twopc.operators.held import KeyedStateStore
from twopc.operators.steps import (
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    Map,
    MapBatches,
    MapRecords,
    StatefulMap,
    Step,
)

__all__ = [
    "Chain",
    "Filter",
    "FilterRecords",
    "FlatMap",
    "FlatMapRecords",
    "KeyedStateStore",
    "Map",
    "MapBatches",
    "MapRecords",
    "StatefulMap",
    "Step",
]
