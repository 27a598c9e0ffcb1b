"""`twopc topics write`: lines of standard input into a topic."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from twopc.cli.cluster_options import cluster_of
from twopc.cli.output import Output, OutputOption
from twopc.cli.shared_options import shared_options
from twopc.cli.topic_lines import JsonLines, NewRecord, TextLines, header_of, records
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.output.topic_writer import TopicWriter
from twopc.kafka.topics.preflight import require_topics

INTERRUPTED = 130


class Form(StrEnum):
    """The forms of a line that `--input` can choose."""

    TEXT = "text"
    JSON = "json"


@shared_options(cluster=cluster_of)
def write_topic(
    cluster: Cluster,
    topic: Annotated[str, typer.Argument(help="The name of the topic; it has to be there.")],
    form: Annotated[Form, typer.Option("--input", "-i", help="What a line is: a value, or a record as JSON.")] = (
        Form.TEXT
    ),
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of each record that has none.")] = None,
    separator: Annotated[
        str | None, typer.Option(help="In text: what stands between the key and the value of a line.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A header that each record gets; may be given several times."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Where to; unless given, the key says, as for any Kafka client.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a record for each line of standard input, and return when all have arrived.

    In JSON a line has what `twopc topics read -o json` prints: `value`, and `key`, `headers` and `timestamp` if wanted.
    A value that is no text is written as JSON; null is a tombstone; bytes stand in `key_base64` or `value_base64`.
    A line that can't be read ends it, by its number, and what stands before it is written.

    \b
    Examples:
      twopc topics write in -b 127.0.0.1:9092 < values.txt
      printf 'anna:3\\nbert:4\\n' | twopc topics write in --separator : --header source=hand
      echo '{"key": "anna", "value": {"clicks": 3}, "headers": {"trace": "7"}}' | twopc topics write in -i json
      twopc topics read dead -o json | twopc topics write in -i json
    """
    if separator is not None and (form is Form.JSON or not separator):
        raise ConfigurationError(
            "--separator is what stands between key and value of a line of text: give it with that"
        )
    lines = JsonLines() if form is Form.JSON else TextLines(None if separator is None else separator.encode())
    extra = NewRecord(None, None if key is None else key.encode(), tuple(map(header_of, header or ())))
    _require(cluster, topic, partition)
    if sys.stdin.isatty():
        typer.echo("one record a line; Ctrl-D ends", err=True)
    written, interrupted = _write(cluster, topic, partition, records(sys.stdin.buffer, lines, extra))
    answer = {"topic": topic, "records": written}
    typer.echo(
        json.dumps(answer) if output is Output.JSON else f"{topic}: {written:,} record{'s'[: written != 1]} written"
    )
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _require(cluster: Cluster, topic: str, partition: int | None) -> None:
    """Refuse a topic that isn't there: a broker might make it at the first record."""
    with cluster.client() as client:
        found = require_topics(client, (topic,), "output")[topic]
    if partition is not None and partition >= found.partitions:
        raise ConfigurationError(f"topic {topic!r} has no partition {partition}: it has {found.partitions}, from 0 on")


def _write(cluster: Cluster, topic: str, partition: int | None, new: Iterator[NewRecord]) -> tuple[int, bool]:
    """Write all records; return how many arrived, and whether Ctrl-C ended it."""
    writer = TopicWriter(cluster)
    place: dict[str, Any] = {} if partition is None else {"partition": partition}
    try:
        for record in new:
            own = place if record.timestamp is None else {**place, "timestamp": record.timestamp}
            writer.write(topic, record.value, record.key, headers=list(record.headers), **own)
            writer.poll()
    except KeyboardInterrupt:
        return writer.finish(), True
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; {writer.finish():,} before it are written") from error
    return writer.finish(), False
