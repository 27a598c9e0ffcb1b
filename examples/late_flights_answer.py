"""The answer that `late_flights.py` must give, computed from the data file by other means, and what it did give."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import islice
from typing import NamedTuple
from zipfile import ZipFile

from flights_data import data_file
from late_flights import LATE_FLIGHT_SCHEMA

from twopc import Avro
from twopc.testing.topics import read_topic


class LateFlight(NamedTuple):
    """One record of the answer. `late_departures` counts those of the same aircraft so far, this one included."""

    aircraft: str
    carrier: str
    airline: str
    flight: int
    origin: str
    dest: str
    date: str
    dep_delay: int
    late_departures: int


def expected_late_flights(first: int | None = None) -> Iterator[LateFlight]:
    """Yield the job's answer to all flights, or to the first of them, from the text of the file.

    No typed reader, no Avro, none of the job's functions.
    """
    with data_file("airlines.csv").open(encoding="utf-8") as file:
        names = {row["carrier"]: row["name"] for row in csv.DictReader(file)}
    late_departures: Counter[str] = Counter()
    with ZipFile(data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        for row in islice(csv.DictReader(TextIOWrapper(file, "utf-8", newline="")), first):
            if row["dep_delay"] == "NA" or int(row["dep_delay"]) < 15:
                continue
            aircraft = "none" if row["tailnum"] == "NA" else row["tailnum"]
            late_departures[aircraft] += 1
            yield LateFlight(
                aircraft=aircraft,
                carrier=row["carrier"],
                airline=names[row["carrier"]],
                flight=int(row["flight"]),
                origin=row["origin"],
                dest=row["dest"],
                date=f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}",
                dep_delay=int(row["dep_delay"]),
                late_departures=late_departures[aircraft],
            )


def read_late_flights(bootstrap_servers: str, topic: str = "late-flights") -> list[LateFlight]:
    """Return what a `read_committed` reader sees of the job's output; each record must be keyed by its aircraft."""
    serde = Avro(LATE_FLIGHT_SCHEMA)
    found = []
    for read in read_topic(bootstrap_servers, topic):
        late = LateFlight(**serde.deserialize(read.value))
        if read.key != late.aircraft.encode():
            raise ValueError(
                f"{topic}[{read.partition}]@{read.offset} is about {late.aircraft}, but its key is {read.key!r}"
            )
        found.append(late)
    return found
