"""The example job's steps, without Kafka, on all flights, against the answer computed by other means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pytest
from flights_data import FLIGHT_SCHEMA, FLIGHTS, NO_TAIL_NUMBER, flights
from late_flights import LATE_FLIGHT_SCHEMA, job
from late_flights_answer import LateFlight, expected_late_flights

from tests.operators.kit import Chain
from twopc.serde import Avro
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore


def outputs(chunks: Iterable[list[dict[str, Any]]]) -> Iterator[LateFlight]:
    chain, encoding = Chain(list(job.definition().steps.values()), DictStore()), Avro(LATE_FLIGHT_SCHEMA)
    for chunk in chunks:
        rows = [InputRow(flight, key_=(flight["tailnum"] or NO_TAIL_NUMBER).encode()) for flight in chunk]
        produced = chain.process(batch_of(rows))
        decoded = encoding.deserialize_all(encoding.serialize_all(produced.values))
        assert [value["aircraft"].encode() for value in decoded] == produced.keys
        yield from (LateFlight(**value) for value in decoded)


def test_the_job_gives_the_answer_computed_directly_from_the_file() -> None:
    found = list(outputs(islice(flights(), 2)))
    assert len(found) > 1_000
    assert found == list(islice(expected_late_flights(), len(found)))


@pytest.mark.proof
@pytest.mark.simulation
def test_it_does_so_to_the_end_of_the_file_where_no_record_of_the_answer_equals_another() -> None:
    expected = list(expected_late_flights())
    assert list(outputs(flights())) == expected
    assert len(set(expected)) == len(expected) == 72_914


def read_back(chunks: Iterable[list[dict[str, Any]]]) -> tuple[int, int]:
    """Let the schema carry flights; count them, and those that never left."""
    serde = Avro(FLIGHT_SCHEMA)
    read, unknown = 0, 0
    for chunk in chunks:
        assert serde.deserialize_all(serde.serialize_all(chunk)) == chunk
        read += len(chunk)
        unknown += sum(flight["dep_delay"] is None for flight in chunk)
    return read, unknown


def test_the_schema_holds_flights_and_those_that_never_left() -> None:
    read, unknown = read_back(islice(flights(), 2))
    assert read > unknown > 0


@pytest.mark.proof
@pytest.mark.simulation
def test_the_schema_holds_every_flight() -> None:
    read, unknown = read_back(flights())
    assert read == FLIGHTS
    assert unknown > 0
