"""Stream jobs from Kafka to Kafka, exactly once.

The smallest one, in a file `upper.py`, started with `twopc run upper.py --bootstrap-servers HOST:PORT`:

    from twopc import Job, KafkaSink, KafkaSource

    job = Job("upper")
    job.source(KafkaSource("in")).map(bytes.upper).sink(KafkaSink("out"))

Every name is imported when it is first used, so that a program that needs one part doesn't load the clients of the
others.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# gRPC reads this when it is imported. It would report on standard error that Spark's JVM was forked beside its threads.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

if TYPE_CHECKING:
    from twopc.config import RunSettings
    from twopc.context import JobContext, SubtaskContext
    from twopc.error_policy import ErrorPolicy, Fail, Skip
    from twopc.errors import (
        CheckpointCorrupted,
        CheckpointDeclined,
        ConfigurationError,
        Fenced,
        GlobalCommitFailed,
        ProtocolViolation,
        TransactionLost,
        TwoPhaseCommitError,
        Unavailable,
        UserCodeError,
    )
    from twopc.graph import JobDefinition
    from twopc.job import Job
    from twopc.kafka.dead_letter import DeadLetter
    from twopc.kafka.new_topic import NewTopic
    from twopc.kafka.registry.schema import SchemaReference
    from twopc.kafka.registry.schema_registry import SchemaRegistry
    from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
    from twopc.kafka.source import KafkaSource
    from twopc.kafka.startup_modes import StartingOffsets
    from twopc.processor import Context, ListState, MapState, Processor, ValueState
    from twopc.protocol.attempts import Traces
    from twopc.protocol.facts import Committable, SplitPosition
    from twopc.protocol.ids import CheckpointId
    from twopc.protocol.messages import Complete
    from twopc.protocol.planned_starts import Witnessed
    from twopc.record import Batch, Record, RecordError, RecordsRefused, Row, Stage
    from twopc.serde import (
        Avro,
        Bytes,
        Double,
        Float,
        HeaderSerde,
        Int,
        Json,
        Long,
        Protobuf,
        Serde,
        SerdeContext,
        String,
    )
    from twopc.sink import (
        Committer,
        GlobalCommitter,
        Outcome,
        PreCommit,
        Settled,
        SharedTransaction,
        Sink,
        SinkWriter,
    )
    from twopc.source import Follower, FollowerStanding, Source, SourcePlanner, SourceReader, Split
    from twopc.stream import Stream
    from twopc.table import Table
    from twopc.two_phase import TwoPhaseCommitSink
    from twopc.windowed import WindowedStream, WindowedTable
    from twopc.windows import Hopping, Session, Sliding, Tumbling, Window

__all__ = [
    "Avro",
    "Batch",
    "Bytes",
    "CheckpointCorrupted",
    "CheckpointDeclined",
    "CheckpointId",
    "Committable",
    "Committer",
    "Complete",
    "ConfigurationError",
    "Context",
    "DeadLetter",
    "DeliveryGuarantee",
    "Double",
    "ErrorPolicy",
    "Fail",
    "Fenced",
    "Float",
    "Follower",
    "FollowerStanding",
    "GlobalCommitFailed",
    "GlobalCommitter",
    "HeaderSerde",
    "Hopping",
    "Int",
    "Job",
    "JobContext",
    "JobDefinition",
    "Json",
    "KafkaSink",
    "KafkaSource",
    "ListState",
    "Long",
    "MapState",
    "NewTopic",
    "Outcome",
    "PreCommit",
    "Processor",
    "Protobuf",
    "ProtocolViolation",
    "Record",
    "RecordError",
    "RecordsRefused",
    "Row",
    "RunSettings",
    "SchemaReference",
    "SchemaRegistry",
    "Serde",
    "SerdeContext",
    "Session",
    "Settled",
    "SharedTransaction",
    "Sink",
    "SinkWriter",
    "Skip",
    "Sliding",
    "Source",
    "SourcePlanner",
    "SourceReader",
    "Split",
    "SplitPosition",
    "Stage",
    "StartingOffsets",
    "Stream",
    "String",
    "SubtaskContext",
    "Table",
    "Traces",
    "TransactionLost",
    "Tumbling",
    "TwoPhaseCommitError",
    "TwoPhaseCommitSink",
    "Unavailable",
    "UserCodeError",
    "ValueState",
    "Window",
    "WindowedStream",
    "WindowedTable",
    "Witnessed",
]

_HOMES = {
    "twopc.config": ("RunSettings",),
    "twopc.context": ("JobContext", "SubtaskContext"),
    "twopc.error_policy": ("ErrorPolicy", "Fail", "Skip"),
    "twopc.errors": (
        "CheckpointCorrupted",
        "CheckpointDeclined",
        "ConfigurationError",
        "Fenced",
        "GlobalCommitFailed",
        "ProtocolViolation",
        "TransactionLost",
        "TwoPhaseCommitError",
        "Unavailable",
        "UserCodeError",
    ),
    "twopc.graph": ("JobDefinition",),
    "twopc.job": ("Job",),
    "twopc.kafka.dead_letter": ("DeadLetter",),
    "twopc.kafka.new_topic": ("NewTopic",),
    "twopc.kafka.registry.schema": ("SchemaReference",),
    "twopc.kafka.registry.schema_registry": ("SchemaRegistry",),
    "twopc.kafka.sink": ("DeliveryGuarantee", "KafkaSink"),
    "twopc.kafka.source": ("KafkaSource",),
    "twopc.kafka.startup_modes": ("StartingOffsets",),
    "twopc.processor": ("Context", "ListState", "MapState", "Processor", "ValueState"),
    "twopc.protocol.attempts": ("Traces",),
    "twopc.protocol.facts": ("Committable", "SplitPosition"),
    "twopc.protocol.ids": ("CheckpointId",),
    "twopc.protocol.messages": ("Complete",),
    "twopc.protocol.planned_starts": ("Witnessed",),
    "twopc.record": ("Batch", "Record", "RecordError", "RecordsRefused", "Row", "Stage"),
    "twopc.serde": (
        "Avro",
        "Bytes",
        "Double",
        "Float",
        "HeaderSerde",
        "Int",
        "Json",
        "Long",
        "Protobuf",
        "Serde",
        "SerdeContext",
        "String",
    ),
    "twopc.sink": (
        "Committer",
        "GlobalCommitter",
        "Outcome",
        "PreCommit",
        "Settled",
        "SharedTransaction",
        "Sink",
        "SinkWriter",
    ),
    "twopc.source": ("Follower", "FollowerStanding", "Source", "SourcePlanner", "SourceReader", "Split"),
    "twopc.stream": ("Stream",),
    "twopc.table": ("Table",),
    "twopc.two_phase": ("TwoPhaseCommitSink",),
    "twopc.windowed": ("WindowedStream", "WindowedTable"),
    "twopc.windows": ("Hopping", "Session", "Sliding", "Tumbling", "Window"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
