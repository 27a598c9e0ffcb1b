"""`twopc topics`: what a job reads and writes, made and looked at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer

from twopc.cli.cluster_options import cluster_of
from twopc.cli.output import Output, OutputOption
from twopc.cli.shared_options import shared_options
from twopc.cli.tables import print_tables, table
from twopc.cli.topic_write import write_topic
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.control_client import EARLIEST, LATEST
from twopc.kafka.clients.topic_client import TopicDescription
from twopc.kafka.input.topic_reader import Ranges, follow, read, whole
from twopc.kafka.record_rows import row_of, text_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.record import Batch

app = typer.Typer(
    help="List, create, write, read and delete topics of a Kafka cluster.", no_args_is_help=True, add_completion=False
)
app.command(name="write")(write_topic)

Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The name of a topic, or several.")]


@app.command(name="list")
@shared_options(cluster=cluster_of)
def list_topics(
    cluster: Cluster,
    internal: Annotated[bool, typer.Option("--internal", help="Kafka's own topics too.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the topics: their partitions, their replication, and how many offsets they hold.

    There are at most as many records as offsets: the markers of transactions have offsets too.

    Example: twopc topics list -b 127.0.0.1:9092 -o json
    """
    with cluster.client() as client:
        topics = [topic for topic in client.describe_topics() if internal or not topic.internal]
    rows = [
        _described(description, offsets) for description, offsets in zip(topics, _offsets(cluster, topics), strict=True)
    ]
    if output is Output.JSON:
        typer.echo(json.dumps(rows))
    elif rows:
        heads = ("topic", "partitions", "replication", "offsets")
        print_tables([table(None, heads, map(_cells, rows))])
    else:
        typer.echo(f"no topic at {cluster.servers}")


@app.command()
@shared_options(cluster=cluster_of)
def create(
    cluster: Cluster,
    topics: Topics,
    partitions: Annotated[int, typer.Option("--partitions", "-p", min=1, help="How many partitions each has.")] = 1,
    replication: Annotated[
        int | None,
        typer.Option(
            "--replication", "-r", min=1, help="How many copies of each.", show_default="what the brokers say"
        ),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the topic; may be given several times.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Create topics, and return when each partition has a leader.

    \b
    Examples:
      twopc topics create in out --partitions 4 -b 127.0.0.1:9092
      twopc topics create in --replication 3 --config min.insync.replicas=2 --config retention.ms=604800000
    """
    settings = dict(map(_setting, config or ()))
    with cluster.client() as client:
        for topic in topics:
            client.create_topic(topic, partitions, replication=replication or -1, settings=settings)
    _tell(output, {"created": topics, "partitions": partitions}, f"created {', '.join(topics)}")


@app.command()
@shared_options(cluster=cluster_of)
def delete(cluster: Cluster, topics: Topics, output: OutputOption = Output.TEXT) -> None:
    """Delete topics with all that is in them, and return when they are gone.

    Example: twopc topics delete in out -b 127.0.0.1:9092
    """
    with cluster.client() as client:
        for topic in topics:
            client.delete_topic(topic)
    _tell(output, {"deleted": topics}, f"deleted {', '.join(topics)}")


@app.command(name="read")
@shared_options(cluster=cluster_of)
def read_topic(
    cluster: Cluster,
    topic: Annotated[str, typer.Argument(help="The name of the topic.")],
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning/--from-end", help="Where to begin: at the first record, or at the end.")
    ] = True,
    following: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written later, until Ctrl-C.")
    ] = False,
    most: Annotated[
        int | None, typer.Option("--max-records", "-n", min=1, help="End after so many.", show_default="all")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Print how many records there are instead of them.")] = False,
    committed: Annotated[
        bool,
        typer.Option(
            "--read-committed/--read-uncommitted",
            help="What a reader with this isolation.level sees; uncommitted: open and aborted transactions too.",
        ),
    ] = True,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the records of a topic, from its beginning to the end that it has now; as no group's member.

    In text each line is TOPIC[PARTITION]@OFFSET, key, value and each header as NAME=VALUE, with tabs between; a null is
    <null>. In JSON each line is a record with its timestamp (Unix milliseconds) and headers too: `key` and `value` are
    text, or null; what is not UTF-8 is `key_base64` or `value_base64` instead. `twopc topics write -i json` takes that.

    \b
    Examples:
      twopc topics read out -b 127.0.0.1:9092
      twopc topics read out -n 10 -o json
      twopc topics read out --from-end --follow
      twopc topics read out --count
    """
    ranges = _chosen(whole(cluster, [topic], committed=committed), topic, partition)
    if not from_beginning:
        ranges = {each: (end, end) for each, (_, end) in ranges.items()}
    if count:
        _print_count(cluster, topic, ranges, committed, output)
        return
    if following:
        starts = {each: first for each, (first, _) in ranges.items()}
        batches: Iterable[Batch | None] = follow(cluster, starts, committed=committed)
    else:
        batches = read(cluster, ranges, committed=committed)
    for message in islice(_rows(batches), most):
        typer.echo(json.dumps(row_of(message)) if output is Output.JSON else text_of(message))


def _rows(batches: Iterable[Batch | None]) -> Iterator[Any]:
    for batch in batches:
        yield from () if batch is None else batch.rows


def _print_count(cluster: Cluster, topic: str, ranges: Ranges, committed: bool, output: Output) -> None:
    counts = dict.fromkeys((partition.partition for partition in ranges), 0)
    for message in _rows(read(cluster, ranges, committed=committed)):
        counts[message.partition()] += 1
    total = sum(counts.values())
    answer = {"topic": topic, "records": total, "partitions": counts}
    _tell(output, answer, f"{topic}: {total:,} record{'' if total == 1 else 's'}")


def _chosen(ranges: Ranges, topic: str, partition: int | None) -> Ranges:
    if partition is None:
        return ranges
    chosen = TopicPartition(topic, partition)
    if chosen not in ranges:
        raise ConfigurationError(f"topic {topic!r} has no partition {partition}: it has {len(ranges)}, from 0 on")
    return {chosen: ranges[chosen]}


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise ConfigurationError(f"--config {text!r} is not NAME=VALUE, as in retention.ms=604800000")
    return name.strip(), value.strip()


def _offsets(cluster: Cluster, topics: Sequence[TopicDescription]) -> Iterator[int]:
    """The number of offsets that each topic holds, for a read_committed reader."""
    partitions = {
        topic.name: [TopicPartition(topic.name, number) for number in range(topic.partitions)] for topic in topics
    }
    everything = [partition for each in partitions.values() for partition in each]
    with cluster.client() as client:
        firsts: Mapping[TopicPartition, Position] = client.offsets(dict.fromkeys(everything, EARLIEST))
        ends = client.offsets(dict.fromkeys(everything, LATEST))
    for topic in topics:
        yield sum(ends[partition] - firsts[partition] for partition in partitions[topic.name])


def _described(topic: TopicDescription, offsets: int) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "partitions": topic.partitions,
        "replication": topic.replication,
        "internal": topic.internal,
        "offsets": offsets,
    }


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["topic"], str(row["partitions"]), str(row["replication"]), f"{row['offsets']:,}")


def _tell(output: Output, body: Mapping[str, Any], sentence: str) -> None:
    typer.echo(json.dumps(body) if output is Output.JSON else sentence)
