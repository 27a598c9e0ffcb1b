"""What happens to records between sources and sinks: steps as descriptions, and the dataflow that runs them."""

from twopc.operators.dataflow import Dataflow, SinkOutput
from twopc.operators.steps import (
    AssignTimestamps,
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    KeyedStep,
    Map,
    MapAsync,
    MapAsyncRecords,
    MapBatches,
    MapRecords,
    Peek,
    PeekRecords,
    Print,
    Process,
    StatefulMap,
    Step,
)
from twopc.operators.write_back_cache import KeyedStateStore

__all__ = [
    "AssignTimestamps",
    "Dataflow",
    "Filter",
    "FilterRecords",
    "FlatMap",
    "FlatMapRecords",
    "KeyedStateStore",
    "KeyedStep",
    "Map",
    "MapAsync",
    "MapAsyncRecords",
    "MapBatches",
    "MapRecords",
    "Peek",
    "PeekRecords",
    "Print",
    "Process",
    "SinkOutput",
    "StatefulMap",
    "Step",
]
