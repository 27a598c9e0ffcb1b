"""The example job's steps, without Kafka, on all flights, against the answer computed by other means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from flights_data import FLIGHT_SCHEMA, FLIGHTS, NO_TAIL_NUMBER, flights
from late_flights import LATE_FLIGHT_SCHEMA, job
from late_flights_answer import LateFlight, expected_late_flights

from twopc.operators import Chain
from twopc.protocol.ids import TopicPartition
from twopc.serde import Avro
from twopc.testing.rows import InputRow, batch_of


class DictStore:
    def __init__(self) -> None:
        self._states: dict[tuple[TopicPartition, bytes], bytes | None] = {}

    def get_many(self, name: str, keys: Sequence[tuple[TopicPartition, bytes]]) -> list[bytes | None]:
        return [self._states.get(key) for key in keys]

    def put_many(self, name: str, items: Sequence[tuple[TopicPartition, bytes, bytes | None]]) -> None:
        self._states.update({(partition, key): state for partition, key, state in items})


@pytest.fixture(scope="module")
def every_flight() -> list[list[dict[str, Any]]]:
    return list(flights())


@pytest.fixture(scope="module")
def expected() -> list[LateFlight]:
    return expected_late_flights()


def outputs(chunks: list[list[dict[str, Any]]]) -> Iterator[LateFlight]:
    chain, encoding = Chain(job.definition().steps, DictStore()), Avro(LATE_FLIGHT_SCHEMA)
    for chunk in chunks:
        rows = [InputRow(flight, key_=(flight["tailnum"] or NO_TAIL_NUMBER).encode()) for flight in chunk]
        produced = chain.process(batch_of(rows))
        decoded = encoding.deserialize_all(encoding.serialize_all(produced.values))
        assert [value["aircraft"].encode() for value in decoded] == produced.keys
        yield from (LateFlight(**value) for value in decoded)


def test_the_job_gives_the_answer_computed_directly_from_the_file(
    every_flight: list[list[dict[str, Any]]], expected: list[LateFlight]
) -> None:
    assert len(expected) == 72_914
    assert list(outputs(every_flight)) == expected


def test_no_two_records_of_the_answer_are_equal_so_that_a_duplicate_can_be_seen(expected: list[LateFlight]) -> None:
    assert len(set(expected)) == len(expected)


def test_the_schema_holds_every_flight(every_flight: list[list[dict[str, Any]]]) -> None:
    assert sum(map(len, every_flight)) == FLIGHTS
    serde = Avro(FLIGHT_SCHEMA)
    some = every_flight[0][:1_000] + every_flight[-1][-1_000:]
    assert serde.deserialize_all(serde.serialize_all(some)) == some
    assert {None} < {flight["dep_delay"] for flight in some}
