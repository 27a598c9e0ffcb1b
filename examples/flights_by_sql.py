"""Flights of each airport and day that left late, and that made it up, by a streaming query of Spark's.

Reads the topics `departures` and `arrivals`, joins the two ends of each flight, and writes the topic `flights-by-day`,
exactly once; a day is told when the watermark has passed it. Killed at any moment and started again, it goes on:

    python examples/flights_by_sql.py load HOST:PORT
    python examples/flights_by_sql.py run HOST:PORT FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from flights_data import flights
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  everybody's name for it

from twopc.spark.streaming import kafka_sink, register
from twopc.testing.topics import Write, create_topic, produce

DEPARTURES, ARRIVALS, OUTPUT = "departures", "arrivals", "flights-by-day"
LATE_MINUTES = 15
PARTITIONS = 2

DEPARTURE = "flight long, origin string, scheduled timestamp, delay int"
ARRIVAL = "flight long, landed timestamp, delay int"

BY_DAY = """
    SELECT origin AS key, to_json(struct(origin, day, flights, late, made_up)) AS value
    FROM (
        SELECT
            origin,
            string(date(window.start)) AS day,
            count(*) AS flights,
            count_if(departed.delay >= {late}) AS late,
            count_if(departed.delay >= {late} AND arrived.delay < {late}) AS made_up
        FROM {departures} AS departed
        JOIN {arrivals} AS arrived
            ON departed.flight = arrived.flight AND landed BETWEEN scheduled AND scheduled + INTERVAL 2 DAYS
        GROUP BY origin, window(scheduled, '1 day')
    )
"""


def landed(flight: dict[str, Any]) -> datetime | None:
    """When a flight landed, or None if it never did."""
    if flight["dep_delay"] is None or flight["air_time"] is None:
        return None
    minutes: int = flight["minute"] + flight["dep_delay"] + flight["air_time"]
    when: datetime = flight["time_hour"] + timedelta(minutes=minutes)
    return when


def load(servers: str, most: int | None = None) -> None:
    """Create the topics, and write both ends of the year's flights, or of the first so many, in the file's order."""
    for topic in (DEPARTURES, ARRIVALS, OUTPUT):
        create_topic(servers, topic, PARTITIONS)
    produce(servers, DEPARTURES, (_departure(*each) for each in _numbered(most)))
    produce(servers, ARRIVALS, (_arrival(*each) for each in _numbered(most) if landed(each[1]) is not None))


def _numbered(most: int | None) -> Iterator[tuple[int, dict[str, Any]]]:
    return islice(enumerate(flight for chunk in flights() for flight in chunk), most)


def _departure(number: int, flight: dict[str, Any]) -> Write:
    when = flight["time_hour"].isoformat()
    return _written(number, {"origin": flight["origin"], "scheduled": when, "delay": flight["dep_delay"]})


def _arrival(number: int, flight: dict[str, Any]) -> Write:
    when = landed(flight)
    assert when is not None
    return _written(number, {"landed": when.isoformat(), "delay": flight["arr_delay"]})


def _written(number: int, event: dict[str, Any]) -> Write:
    return Write(json.dumps({"flight": number, **event}).encode(), b"%d" % number)


def by_day(session: SparkSession, servers: str, offsets_a_batch: int = 50_000) -> DataFrame:
    """Return the query."""
    register(session)

    def read(topic: str, schema: str, time: str) -> DataFrame:
        source = session.readStream.format("twopc-kafka").option("kafka.bootstrap.servers", servers)
        made = source.option("subscribe", topic).option("maxOffsetsPerTrigger", offsets_a_batch).load()
        events = made.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")
        return events.withWatermark(time, "1 day")

    departures, arrivals = read(DEPARTURES, DEPARTURE, "scheduled"), read(ARRIVALS, ARRIVAL, "landed")
    return session.sql(BY_DAY, departures=departures, arrivals=arrivals, late=LATE_MINUTES)


def run(servers: str, work: Path, offsets_a_batch: int = 50_000) -> None:
    """Run the query until it has read what is there now."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.appName(OUTPUT)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    sink = kafka_sink(OUTPUT, name=OUTPUT, bootstrap_servers=servers, decisions=str(work / "decisions"))
    writing = by_day(session, servers, offsets_a_batch).writeStream.foreachBatch(sink).trigger(availableNow=True)
    writing.option("checkpointLocation", str(work / "checkpoint")).start().awaitTermination()
    session.stop()


def main() -> None:
    match sys.argv[1:]:
        case ["load", servers]:
            load(servers)
        case ["run", servers, work]:
            run(servers, Path(work))
        case ["run", servers, work, offsets_a_batch]:
            run(servers, Path(work), int(offsets_a_batch))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
