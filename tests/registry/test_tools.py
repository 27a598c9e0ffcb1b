"""What tools, and the page on tests, make of a job whose schemas a registry keeps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.registry.kit import ORDER
from twopc import ConfigurationError, Job, KafkaSink, KafkaSource, SchemaRegistry
from twopc.connect import SerdeContext
from twopc.drill.scratch_job import Names, scratch_definition
from twopc.kafka.connectors import KafkaConnectors
from twopc.scratch.other_topics import rebound_definition
from twopc.testing import MemoryRegistry

PAGE = Path(__file__).parents[2] / "docs" / "testing-jobs.md"


def copying(topic: Any, registry: SchemaRegistry) -> Job:
    job = Job("copies")
    source = KafkaSource("real-in", value=registry.avro(), bootstrap_servers="there:1")
    job.source(source).sink(KafkaSink(topic, value=registry.avro(ORDER), bootstrap_servers="there:1"))
    return job


def test_a_drill_writes_under_the_subject_of_the_real_topic(memory_registry: MemoryRegistry) -> None:
    memory_registry.register("real-out-value", ORDER)
    definition = copying("real-out", SchemaRegistry(memory_registry.url)).definition()
    (sink,) = KafkaConnectors.of(scratch_definition(definition, Names("twopc-drill-1"), [])).sinks.values()
    assert sink.topic == "twopc-drill-1-out"
    opened = sink.value.open(SerdeContext("twopc-drill-1-out", is_key=False, writing=True))
    assert opened.serialize({"id": 1, "at": 0}) is not None
    opened.close()


def test_a_drill_refuses_a_sink_whose_function_chooses_the_topic() -> None:
    definition = copying(lambda record: "real-out", SchemaRegistry("http://127.0.0.1:1")).definition()
    with pytest.raises(ConfigurationError, match="a function chooses one for each record"):
        scratch_definition(definition, Names("twopc-drill-1"), [])


def test_a_benchmark_is_refused_by_the_name_of_the_serde() -> None:
    definition = copying("real-out", SchemaRegistry("http://127.0.0.1:1")).definition()
    with pytest.raises(ConfigurationError, match=r"can't be benchmarked: 'source-1' has SchemaRegistry\(.*avro\(\)"):
        rebound_definition(definition, "bench-1", "benchmarked")


def test_the_test_of_the_page_passes() -> None:
    shown = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[2]
    names: dict[str, Any] = {}
    exec(shown, names)
    names["test_pages_are_copied"]()
