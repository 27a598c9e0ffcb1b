"""Jobs whose schemas a registry keeps, run in memory."""

from __future__ import annotations

from typing import Any

import pytest

from tests.registry.kit import ORDER, ORDER_2, ORDER_OF_TEXT
from twopc import ConfigurationError, Job, Json, KafkaSink, KafkaSource, SchemaRegistry, Skip
from twopc.errors import Unavailable
from twopc.kafka.registry import client as registry_client
from twopc.testing import MemoryRegistry, MemoryRun

AT = 1_767_323_045_000


def copying(registry: SchemaRegistry) -> Job:
    job = Job("copies", on_error=Skip())
    source = KafkaSource("in", value=registry.avro(ORDER_2))
    job.source(source).sink(KafkaSink("out", value=registry.avro(ORDER_2)))
    return job


def test_values_go_through_a_job_by_their_schemas(memory_registry: MemoryRegistry) -> None:
    registry = SchemaRegistry(memory_registry.url, auto_register=True)
    with MemoryRun(copying(registry)) as run:
        run.send("in", {"id": 1, "at": AT, "note": "hi"})
        run.crash()
        run.checkpoint()
        assert [record.value["note"] for record in run.read("out")] == ["hi"]


def test_an_earlier_version_comes_out_as_the_schema_of_the_job_has_it(memory_registry: MemoryRegistry) -> None:
    earlier = memory_registry.register("in-value", ORDER)
    with MemoryRun(copying(SchemaRegistry(memory_registry.url, auto_register=True))) as run:
        run.send_raw("in", b"\0" + earlier.to_bytes(4, "big") + bytes([2, 0]))
        run.checkpoint()
        assert [(record.value["id"], record.value["note"]) for record in run.read("out")] == [(1, "-")]


def test_a_sink_whose_schema_is_not_registered_is_refused_before_the_first_record(
    memory_registry: MemoryRegistry,
) -> None:
    refused = pytest.raises(ConfigurationError, match="the values of topic 'out' can't be written")
    with refused, MemoryRun(copying(SchemaRegistry(memory_registry.url))) as run:
        run.checkpoint()


def test_a_source_that_can_not_read_what_is_registered_is_refused_before_the_first_record(
    memory_registry: MemoryRegistry,
) -> None:
    memory_registry.register("in-value", ORDER_OF_TEXT)
    refused = pytest.raises(ConfigurationError, match=r"the values of topic 'in' can't be read.*Order.id is string")
    with refused, MemoryRun(copying(SchemaRegistry(memory_registry.url, auto_register=True))) as run:
        run.checkpoint()


def test_a_value_that_has_no_schema_follows_the_policy(memory_registry: MemoryRegistry) -> None:
    with MemoryRun(copying(SchemaRegistry(memory_registry.url, auto_register=True))) as run:
        run.send_raw("in", b"plain text")
        run.send("in", {"id": 1, "at": AT})
        run.checkpoint()
        assert [record.value["id"] for record in run.read("out")] == [1]


def test_a_registry_that_is_away_skips_no_record(
    memory_registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_client, "ANSWER_BUDGET_SECONDS", 0.1)
    with MemoryRun(copying(SchemaRegistry(memory_registry.url, auto_register=True))) as run:
        run.checkpoint()
        earlier = memory_registry.register("elsewhere", ORDER)
        run.send_raw("in", b"\0" + earlier.to_bytes(4, "big") + bytes([2, 0]))
        memory_registry.stop()
        with pytest.raises(Unavailable):
            run.checkpoint()
        memory_registry.start()
        run.checkpoint()
        assert [record.value["id"] for record in run.read("out")] == [1]


def by_note(registry: SchemaRegistry, schema: dict[str, Any] | None) -> Job:
    job = Job("noted")
    keyed = job.source(KafkaSource("in", value=registry.avro(schema))).key_by(lambda order: order["note"], name="noted")
    keyed.sink(KafkaSink("out", key=Json(), value=registry.avro(ORDER_2)))
    return job


def test_a_topic_of_the_jobs_own_needs_no_subject(memory_registry: MemoryRegistry) -> None:
    with MemoryRun(by_note(SchemaRegistry(memory_registry.url, auto_register=True), ORDER_2)) as run:
        run.send("in", {"id": 1, "at": AT, "note": "hi"})
        run.checkpoint()
        assert [(record.key, record.value["id"]) for record in run.read("out")] == [("hi", 1)]
    assert not [each for each in memory_registry.requests if "repartition" in each]


def test_values_whose_schema_is_not_in_the_job_need_a_serde_for_a_topic_of_its_own() -> None:
    with pytest.raises(ConfigurationError, match=r"give key_by a serde for them, as value=Avro\(schema\)"):
        by_note(SchemaRegistry("http://127.0.0.1:1"), None)
