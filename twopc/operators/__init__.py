"""What happens to records between sources and sinks: steps as descriptions, and the dataflow that runs them."""

from twopc.operators.dataflow import Dataflow, SinkOutput
from twopc.operators.steps import (
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    Map,
    MapBatches,
    MapRecords,
    Peek,
    PeekRecords,
    Print,
    StatefulMap,
    Step,
)
from twopc.operators.write_back_cache import KeyedStateStore

__all__ = [
    "Dataflow",
    "Filter",
    "FilterRecords",
    "FlatMap",
    "FlatMapRecords",
    "KeyedStateStore",
    "Map",
    "MapBatches",
    "MapRecords",
    "Peek",
    "PeekRecords",
    "Print",
    "SinkOutput",
    "StatefulMap",
    "Step",
]
