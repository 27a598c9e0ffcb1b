"""`twopc dead-letters`: records that went wrong, which and why, and back to where they came from."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from twopc.cli.cluster_options import cluster_of
from twopc.cli.letter_rows import cells, is_of, lines
from twopc.cli.output import Output, OutputOption
from twopc.cli.shared_options import shared_options
from twopc.cli.tables import print_tables, table
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.found_letter import FoundLetter
from twopc.kafka.input.letters import newest_of, read_letters, read_marks, row_of_letter
from twopc.kafka.input.topic_reader import whole
from twopc.kafka.letter_choice import LetterChoice
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import Position
from twopc.kafka.transactions.letter_replay import LetterReplay, whole_now

app = typer.Typer(
    help="Look at the records that went wrong, and replay them.", no_args_is_help=True, add_completion=False
)

CHUNK = 1_000
"""The letters of one transaction: it is open for a moment, and readers of the input wait for it."""

SHOWN = 50
"""The letters that are listed unless somebody says how many."""

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic of the dead letters.")]
Step = Annotated[str | None, typer.Option(metavar="TEXT", help="Only of operators or serdes with this text.")]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Only of exceptions with this text.")]


@app.command(name="list")
@shared_options(cluster=cluster_of)
def list_letters(
    cluster: Cluster,
    topic: Topic,
    step: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only of operators or serdes with this text.")
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Only of exceptions with this text.")] = None,
    most: Annotated[
        int | None,
        typer.Option("--max-letters", "-n", min=1, help="The newest so many.", show_default="50; all in JSON"),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the dead letters of a topic: where each came from, what went wrong where, and whether it was replayed.

    Below is how many there are of each kind. In JSON each line is a letter.

    \b
    Examples:
      twopc dead-letters list orders-dead -b 127.0.0.1:9092
      twopc dead-letters list orders-dead --step map --reason KeyError -n 20 -o json
    """
    ranges = whole(cluster, [topic])
    replayed = read_marks(cluster, ranges)
    found = (each for each in read_letters(cluster, ranges) if is_of(each, step, reason))
    if output is Output.JSON:
        for each in found if most is None else newest_of(found, most):
            typer.echo(json.dumps(row_of_letter(each, each.place in replayed)))
        return
    kinds: Counter[tuple[str, str]] = Counter()
    newest = newest_of(_counted(found, kinds), most or SHOWN)
    if not newest:
        typer.echo(f"{topic}: no dead letter{'' if step is None and reason is None else ' of that kind'}")
        return
    heads = ("letter", "record", "went wrong in", "exception", "")
    counts = ((f"{count:,}", *kind) for kind, count in kinds.most_common())
    print_tables(
        [
            table(None, heads, (cells(each, each.place in replayed) for each in newest)),
            table(None, ("letters", "went wrong in", "exception"), counts),
        ]
    )


@app.command()
@shared_options(cluster=cluster_of)
def show(
    cluster: Cluster,
    letter: Annotated[str, typer.Argument(metavar="LETTER", help="Where it stands, as TOPIC[PARTITION]@OFFSET.")],
    output: OutputOption = Output.TEXT,
) -> None:
    """Show one dead letter: the record as it was read, and all that is known of what went wrong.

    Example: twopc dead-letters show 'orders-dead[0]@12' -b 127.0.0.1:9092
    """
    place = _place(letter)
    ranges = whole(cluster, [place.partition.topic])
    if place.partition not in ranges:
        raise ConfigurationError(f"topic {place.partition.topic!r} has no partition {place.partition.partition}")
    first, end = ranges[place.partition]
    at = {place.partition: (Position(max(first, place.offset)), Position(min(end, place.offset + 1)))}
    found = next(iter(read_letters(cluster, at)), None) if first <= place.offset < end else None
    if found is None:
        raise ConfigurationError(f"there is no dead letter at {place}: twopc dead-letters list {place.partition.topic}")
    was_replayed = place in read_marks(cluster, ranges)
    if output is Output.JSON:
        typer.echo(json.dumps(row_of_letter(found, was_replayed)))
        return
    for name, text in lines(found, was_replayed):
        typer.echo(f"{name}: {text}")


@app.command()
@shared_options(cluster=cluster_of)
def replay(
    cluster: Cluster,
    topic: Topic,
    letters: Annotated[
        list[str] | None, typer.Argument(metavar="[LETTER...]", help="Where they stand, as TOPIC[PARTITION]@OFFSET.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them, or all of a kind.")] = False,
    step: Step = None,
    reason: Reason = None,
    again: Annotated[bool, typer.Option("--again", help="Also those that were replayed before.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Say which they are, and write nothing.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write the records of dead letters back to the topics that they came from, exactly once, for a mended job.

    Each goes to the partition that it was read from, as it was, with the header __twopc.replayed, which says where its
    letter stands. The letter is marked in the same transaction; one that was replayed is left out, or refused where it
    is named, unless you say --again.

    \b
    Examples:
      twopc dead-letters replay orders-dead --all --step map --reason KeyError --dry-run
      twopc dead-letters replay orders-dead --all -b 127.0.0.1:9092
      twopc dead-letters replay orders-dead 'orders-dead[0]@12'
    """
    named_ones = frozenset(_place(text, topic) for text in letters or ())
    if bool(named_ones) == every:
        raise ConfigurationError("say which letters to replay: their places, as the list has them, or --all")
    count = 0
    with nullcontext() if dry else LetterReplay(cluster, topic) as replaying, _progress() as tell:
        ranges = whole_now(cluster, topic)
        choice = LetterChoice(named_ones, read_marks(cluster, ranges), again, lambda each: is_of(each, step, reason))
        chosen = choice.of(read_letters(cluster, ranges))
        while chunk := list(islice(chosen, CHUNK)):
            _require_inputs(cluster, chunk)
            if replaying is not None:
                replaying.put_back(chunk)
            count += len(chunk)
            tell(count)
    if output is Output.JSON:
        told = {"topic": topic, "replayed": 0 if dry else count, "chosen": count, "left_out": dict(choice.left_out)}
        typer.echo(json.dumps(told))
        return
    typer.echo(f"{topic}: {count:,} letters {'would be replayed' if dry else 'replayed'}")
    for why, number in choice.left_out.most_common():
        typer.echo(f"{topic}: {number:,} left out; each {why}")


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Show a person how far it is, while the context lasts."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} letters"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("letters", total=None)
        yield lambda done: progress.update(task, completed=done)


def _place(text: str, topic: str | None = None) -> Place:
    place = Place.parse(text)
    if place is None:
        raise ConfigurationError(f"{text!r} is no place of a letter: say TOPIC[PARTITION]@OFFSET, as the list does")
    if topic is not None and place.partition.topic != topic:
        raise ConfigurationError(f"{text!r} is no place in topic {topic!r}")
    return place


def _require_inputs(cluster: Cluster, letters: Iterable[FoundLetter]) -> None:
    """Raise ConfigurationError for a record whose topic or partition is gone."""
    origins = {each.origin.partition for each in letters if each.origin is not None}
    with cluster.client() as client:
        known = client.topics(sorted({each.topic for each in origins}))
    for each in sorted(origins):
        if each.topic not in known or each.partition >= known[each.topic].partitions:
            raise ConfigurationError(
                f"records of {each} can't go back there: {cluster.servers} has no such partition any more"
            )


def _counted(letters: Iterable[FoundLetter], kinds: Counter[tuple[str, str]]) -> Iterator[FoundLetter]:
    for each in letters:
        kinds[each.text("class.name"), each.text("exception.class.name")] += 1
        yield each
