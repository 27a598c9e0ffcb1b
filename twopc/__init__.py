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
    from twopc.error_policy import Fail, Skip
    from twopc.errors import (
        ConfigurationError,
        UserCodeError,
    )
    from twopc.job import Job
    from twopc.kafka.dead_letter import DeadLetter
    from twopc.kafka.input.startup_modes import StartingOffsets
    from twopc.kafka.registry.schema import SchemaReference
    from twopc.kafka.registry.schema_registry import SchemaRegistry
    from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
    from twopc.kafka.source import KafkaSource
    from twopc.kafka.topics.new_topic import NewTopic
    from twopc.processor import Context, ListState, MapState, Processor, ValueState
    from twopc.record import Batch, Record
    from twopc.serde import (
        Avro,
        Bytes,
        Double,
        Float,
        Int,
        Json,
        Long,
        Protobuf,
        Serde,
        String,
    )
    from twopc.stream import Stream
    from twopc.table import Table
    from twopc.windowed import WindowedStream, WindowedTable
    from twopc.windows import Hopping, Session, Sliding, Tumbling, Window

__all__ = [
    "Avro",
    "Batch",
    "Bytes",
    "ConfigurationError",
    "Context",
    "DeadLetter",
    "DeliveryGuarantee",
    "Double",
    "Fail",
    "Float",
    "Hopping",
    "Int",
    "Job",
    "Json",
    "KafkaSink",
    "KafkaSource",
    "ListState",
    "Long",
    "MapState",
    "NewTopic",
    "Processor",
    "Protobuf",
    "Record",
    "SchemaReference",
    "SchemaRegistry",
    "Serde",
    "Session",
    "Skip",
    "Sliding",
    "StartingOffsets",
    "Stream",
    "String",
    "Table",
    "Tumbling",
    "UserCodeError",
    "ValueState",
    "Window",
    "WindowedStream",
    "WindowedTable",
]

_HOMES = {
    "twopc.error_policy": ("Fail", "Skip"),
    "twopc.errors": (
        "ConfigurationError",
        "UserCodeError",
    ),
    "twopc.job": ("Job",),
    "twopc.kafka.dead_letter": ("DeadLetter",),
    "twopc.kafka.topics.new_topic": ("NewTopic",),
    "twopc.kafka.registry.schema": ("SchemaReference",),
    "twopc.kafka.registry.schema_registry": ("SchemaRegistry",),
    "twopc.kafka.sink": ("DeliveryGuarantee", "KafkaSink"),
    "twopc.kafka.source": ("KafkaSource",),
    "twopc.kafka.input.startup_modes": ("StartingOffsets",),
    "twopc.processor": ("Context", "ListState", "MapState", "Processor", "ValueState"),
    "twopc.record": ("Batch", "Record"),
    "twopc.serde": (
        "Avro",
        "Bytes",
        "Double",
        "Float",
        "Int",
        "Json",
        "Long",
        "Protobuf",
        "Serde",
        "String",
    ),
    "twopc.stream": ("Stream",),
    "twopc.table": ("Table",),
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
