"""Topics that Kafka keeps for itself are warned of by the source that reads them and the sink that writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.protocol.ids import NO_ATTEMPT
from twopc.sink import Sink
from twopc.source import Source


@pytest.mark.parametrize(
    ("end", "warnings"),
    [
        (KafkaSource(["__consumer_offsets", "a"]), ["topic '__consumer_offsets' is read"]),
        (KafkaSink("__b"), ["topic '__b' is written to"]),
        (KafkaSink("b"), []),
    ],
    ids=["read", "written", "neither"],
)
def test_topics_that_kafka_keeps_for_itself_are_warned_of(
    end: Source | Sink, warnings: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = RunSettings(bootstrap_servers="127.0.0.1:1", checkpoint_dir=str(tmp_path))
    with end.watched(JobContext("job", NO_ATTEMPT, 1, settings)):
        pass
    assert [message.split(",")[0] for message in caplog.messages] == warnings
