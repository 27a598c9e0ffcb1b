"""What a subtask is made of."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from twopc.clock import Clock
from twopc.operators import Dataflow
from twopc.runtime.link import Link
from twopc.runtime.state import SubtaskStore
from twopc.sink import SinkWriter
from twopc.source import SourceReader


@dataclass(frozen=True, slots=True)
class Parts:
    """What a subtask is made of: `source` is the operator id of what `reader` reads.

    Every executor must run one task at a time, in order.
    """

    source: str
    reader: SourceReader
    dataflow: Dataflow
    writer: SinkWriter
    store: SubtaskStore
    link: Link
    clock: Clock
    snapshot_executor: Executor
    store_executor: Executor
    commit_executor: Executor
