"""The names for authors of sources, sinks, serdes and policies of their own; jobs need none of them.

What such parts raise is in `twopc.errors`; what they share with jobs (`Batch`, `Record`, `Serde`) is in `twopc`.
"""

from __future__ import annotations

from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.error_policy import ErrorPolicy
from twopc.graph import JobDefinition
from twopc.protocol.attempts import Traces
from twopc.protocol.facts import Committable, SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Complete
from twopc.protocol.planned_starts import Witnessed
from twopc.record import ErrorStage, RecordError, RecordsRefused, Row
from twopc.serde import HeaderSerde, SerdeContext
from twopc.sink import Committer, GlobalCommitter, Outcome, PreCommit, Settled, SharedTransaction, Sink, SinkWriter
from twopc.source import Follower, FollowerStanding, Source, SourcePlanner, SourceReader, Split
from twopc.two_phase import TwoPhaseCommitSink

__all__ = [
    "CheckpointId",
    "Committable",
    "Committer",
    "Complete",
    "ErrorPolicy",
    "ErrorStage",
    "Follower",
    "FollowerStanding",
    "GlobalCommitter",
    "HeaderSerde",
    "JobContext",
    "JobDefinition",
    "Outcome",
    "PreCommit",
    "RecordError",
    "RecordsRefused",
    "Row",
    "RunSettings",
    "SerdeContext",
    "Settled",
    "SharedTransaction",
    "Sink",
    "SinkWriter",
    "Source",
    "SourcePlanner",
    "SourceReader",
    "Split",
    "SplitPosition",
    "SubtaskContext",
    "Traces",
    "TwoPhaseCommitSink",
    "Witnessed",
]
