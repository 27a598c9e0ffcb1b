"""A state that the job no longer declares is refused, or dropped by name."""

from __future__ import annotations

import pytest

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.topic_partition import TopicPartition
from twopc.serde import Json
from twopc.state.backend import Family
from twopc.state.layout import state_prefix
from twopc.state.memory import MemoryBackend
from twopc.state.schema_check import drop_undeclared
from twopc.state.serdes import read_serdes, write_serdes

PARTITIONS = [TopicPartition("in", 0), TopicPartition("in", 3)]


@pytest.fixture
def backend() -> MemoryBackend:
    made = MemoryBackend()
    write_serdes(made, {"count": Json(), "last": Json()})
    keys = [state_prefix(partition, name) + b"k" for partition in PARTITIONS for name in ("count", "last")]
    made.put_many(Family.KEYED, [(key, b"1") for key in keys])
    return made


def test_a_renamed_state_is_refused_with_what_to_do(backend: MemoryBackend) -> None:
    with pytest.raises(ConfigurationError, match=r"state 'count'.*declares: 'tally', 'last'.*--drop-states count"):
        drop_undeclared(backend, ["tally", "last"], [], PARTITIONS)
    assert backend.key_count() == 4


def test_a_job_that_declares_what_is_there_goes_on_and_a_new_state_is_fine(backend: MemoryBackend) -> None:
    drop_undeclared(backend, ["count", "last", "new"], [], PARTITIONS)
    drop_undeclared(MemoryBackend(), ["count"], [], PARTITIONS)
    assert backend.key_count() == 4


def test_a_state_that_is_given_up_is_deleted_in_every_partition_and_asked_about_no_more(backend: MemoryBackend) -> None:
    drop_undeclared(backend, ["last"], ["count"], PARTITIONS)
    left = [key for key, _ in backend.scan(Family.KEYED, b"")]
    assert left == [state_prefix(partition, "last") + b"k" for partition in PARTITIONS]
    assert list(read_serdes(backend)) == ["last"]
    drop_undeclared(backend, ["last"], [], PARTITIONS)


def test_a_state_that_the_job_declares_is_never_dropped(backend: MemoryBackend) -> None:
    with pytest.raises(ConfigurationError, match="drop_states names 'count'"):
        drop_undeclared(backend, ["count", "last"], ["count"], PARTITIONS)
    assert backend.key_count() == 4


def test_names_are_separated_by_commas() -> None:
    assert RunSettings(drop_states="a, b,").dropped_states() == {"a", "b"}
    assert RunSettings().dropped_states() == frozenset()
