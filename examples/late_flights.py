"""Flights that departed late, with the airline's name and how often the same aircraft has been late so far.

Reads topic `flights` (Avro, keyed by tail number), writes topic `late-flights` (Avro, same key), exactly once:

    twopc run examples/late_flights.py --bootstrap-servers HOST:PORT --parallelism 2
"""

from __future__ import annotations

from typing import Any

from flights_data import FLIGHT_SCHEMA, NO_TAIL_NUMBER, airlines

from twopc import Avro, Job, KafkaSink, KafkaSource

LATE_MINUTES = 15
"""A flight departed late if it left the gate this many minutes behind schedule, or more: the Bureau's own measure.
A cancelled flight, which has no departure delay, didn't depart late."""

LATE_FLIGHT_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "LateFlight",
    "namespace": "nycflights13",
    "fields": [
        {"name": "aircraft", "type": "string"},
        {"name": "carrier", "type": "string"},
        {"name": "airline", "type": "string"},
        {"name": "flight", "type": "int"},
        {"name": "origin", "type": "string"},
        {"name": "dest", "type": "string"},
        {"name": "date", "type": "string"},
        {"name": "dep_delay", "type": "int"},
        {"name": "late_departures", "type": "int"},
    ],
}

AIRLINES = airlines()


def departed_late(flight: dict[str, Any]) -> bool:
    return flight["dep_delay"] is not None and flight["dep_delay"] >= LATE_MINUTES


def with_airline(flight: dict[str, Any]) -> dict[str, Any]:
    """Keep what the answer needs, and join the airline's name from the small table."""
    return {
        "aircraft": flight["tailnum"] or NO_TAIL_NUMBER,
        "carrier": flight["carrier"],
        "airline": AIRLINES[flight["carrier"]],
        "flight": flight["flight"],
        "origin": flight["origin"],
        "dest": flight["dest"],
        "date": f"{flight['year']}-{flight['month']:02}-{flight['day']:02}",
        "dep_delay": flight["dep_delay"],
    }


def count_late(departures: int | None, flight: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Count per key, which is the aircraft; the count lives in checkpoints."""
    departures = (departures or 0) + 1
    return departures, flight | {"late_departures": departures}


job = Job("late-flights")
(
    job.source(KafkaSource("flights", value=Avro(FLIGHT_SCHEMA)))
    .filter(departed_late)
    .map(with_airline)
    .stateful_map(count_late, name="late-departures")
    .sink(KafkaSink("late-flights", value=Avro(LATE_FLIGHT_SCHEMA)))
)
