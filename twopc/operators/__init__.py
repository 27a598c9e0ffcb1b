"""The operators between sources and sinks: steps as descriptions, and the dataflow that runs them."""

from twopc.operators.async_step import MapAsync, MapAsyncRecords
from twopc.operators.batch_step import MapBatches
from twopc.operators.broadcast import JoinBroadcast, KeepBroadcast
from twopc.operators.dataflow import Dataflow
from twopc.operators.keyed import StatefulMap
from twopc.operators.keyed_records import StatefulMapRecords
from twopc.operators.meeting import Order
from twopc.operators.process_step import Process
from twopc.operators.records import FilterRecords, FlatMapRecords, KeyByRecords, MapRecords, PeekRecords, Print
from twopc.operators.sink_output import SinkOutput
from twopc.operators.step import Step
from twopc.operators.table import JoinTable, KeepTable
from twopc.operators.turn import Turn
from twopc.operators.values import AssignTimestamps, Filter, FlatMap, KeyBy, Map, Peek
from twopc.operators.window_step import WindowAggregate
from twopc.operators.write_back_cache import KeyedStateStore

__all__ = [
    "AssignTimestamps",
    "Dataflow",
    "Filter",
    "FilterRecords",
    "FlatMap",
    "FlatMapRecords",
    "JoinBroadcast",
    "JoinTable",
    "KeepBroadcast",
    "KeepTable",
    "KeyBy",
    "KeyByRecords",
    "KeyedStateStore",
    "Map",
    "MapAsync",
    "MapAsyncRecords",
    "MapBatches",
    "MapRecords",
    "Order",
    "Peek",
    "PeekRecords",
    "Print",
    "Process",
    "SinkOutput",
    "StatefulMap",
    "StatefulMapRecords",
    "Step",
    "Turn",
    "WindowAggregate",
]
