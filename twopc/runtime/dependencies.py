"""The dependencies of a subtask."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from twopc.clock import Clock
from twopc.operators import Dataflow
from twopc.runtime.broadcasts import Broadcasts
from twopc.runtime.inputs import Inputs
from twopc.runtime.link import Link
from twopc.runtime.outputs import Outputs
from twopc.runtime.record_errors import RecordErrors
from twopc.runtime.repartition_times import RepartitionTimes
from twopc.runtime.state import SubtaskStore


@dataclass(frozen=True, slots=True)
class SubtaskDependencies:
    """The parts that a subtask is made of; every executor must run one task at a time, in order.

    `broadcasts` are None in a job without such tables.
    """

    inputs: Inputs
    dataflow: Dataflow
    outputs: Outputs
    record_errors: RecordErrors
    store: SubtaskStore
    link: Link
    clock: Clock
    snapshot_executor: Executor
    store_executor: Executor
    commit_executor: Executor
    repartition_times: RepartitionTimes
    broadcasts: Broadcasts | None = None
