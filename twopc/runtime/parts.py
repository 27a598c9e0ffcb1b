"""What a subtask is made of."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from twopc.clock import Clock
from twopc.operators import Chain
from twopc.runtime.link import Link
from twopc.runtime.state import SubtaskStore
from twopc.sink import TwoPhaseCommitSink
from twopc.source import SourceReader


@dataclass(frozen=True, slots=True)
class Parts:
    """What a subtask is made of; every executor must run one task at a time, in order."""

    reader: SourceReader
    chain: Chain
    sink: TwoPhaseCommitSink[Any]
    store: SubtaskStore
    link: Link
    clock: Clock
    snapshot_executor: Executor
    store_executor: Executor
    commit_executor: Executor
