"""`twopc produce`: writes a load that can be verified, and judges whether a topic holds one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from twopc.cli.cluster_options import cluster_of
from twopc.cli.kafka_options import BootstrapServers, KafkaConfig
from twopc.cli.output import Output, OutputOption
from twopc.errors import Unavailable
from twopc.kafka.clients.cluster import Cluster
from twopc.verify.load import LoadPlan
from twopc.verify.load_producer import ProducedLoad, check
from twopc.verify.load_producer import produce as write_load
from twopc.verify.report import verdict_as_json

BROKEN = 1
INTERRUPTED = 130


def produce(
    topic: Annotated[str, typer.Option(help="Where to; it has to be there.")],
    records: Annotated[int, typer.Option("--records", "-n", help="How many records.")] = 1_000_000,
    keys: Annotated[int, typer.Option(help="How many keys, chosen from at random.")] = 1_000,
    size: Annotated[int, typer.Option(help="How many bytes each value has.")] = 100,
    rate: Annotated[int | None, typer.Option(help="Records a second; as fast as it goes unless given.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed makes the same records.")] = 0,
    judge: Annotated[
        bool, typer.Option("--check", help="Write nothing: judge whether the topic holds exactly these records.")
    ] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka_config: KafkaConfig = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors and the result.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a load that can be verified: each value has its key, its number within the key, and a checksum.

    The records follow from the options: with the same ones, --check judges whether a topic holds them, each once and in
    the order of its key. The first Ctrl-C ends the load, waits for what is under way and says how much was written.

    \b
    Examples:
      twopc produce --topic orders --records 1000000 --keys 1000 --size 200
      twopc produce --topic orders --records 60000 --rate 1000 -o json
      twopc produce --topic orders-copy --records 1000000 --size 200 --check
    """
    cluster = cluster_of(bootstrap_servers, kafka_config)
    plan = LoadPlan(topic=topic, records=records, keys=keys, size=size, seed=seed, rate=rate)
    if judge:
        _check(plan, cluster, output)
        return
    with _watched(plan, quiet) as watch:
        produced = write_load(plan, cluster, watch)
    _print(plan, produced, output)
    if produced.failed:
        raise Unavailable(f"{produced.failed:,} records were not written to {topic}: {produced.first_failure}")
    if produced.interrupted:
        raise typer.Exit(INTERRUPTED)


def _check(plan: LoadPlan, cluster: Cluster, output: Output) -> None:
    verdict = check(plan, cluster)
    if output is Output.JSON:
        typer.echo(json.dumps(verdict_as_json(verdict)))
    else:
        for finding in verdict.findings:
            typer.echo(f"  {finding}")
        counts = ", ".join(f"{kind.value} {count:,}" for kind, count in verdict.counts.items()) or "all there, in order"
        typer.echo(f"{plan.topic}: {counts}; {verdict.found:,} found, {verdict.expected:,} expected")
    if not verdict.held:
        raise typer.Exit(BROKEN)


@contextmanager
def _watched(plan: LoadPlan, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show how far the load is, where somebody can see it."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    columns = (TextColumn(plan.topic), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("load", total=plan.records)
        yield lambda done: progress.update(task, completed=done)


def _print(plan: LoadPlan, produced: ProducedLoad, output: Output) -> None:
    rate = produced.acknowledged / produced.seconds if produced.seconds else 0.0
    if output is Output.JSON:
        typer.echo(json.dumps({**asdict(plan), **asdict(produced), "records_per_s": round(rate, 1)}))
        return
    how = "interrupted: " if produced.interrupted else ""
    typer.echo(
        f"{plan.topic}: {how}{produced.acknowledged:,} of {plan.records:,} records with {plan.keys:,} keys written "
        f"in {produced.seconds:.1f} s, {rate:,.0f} a second"
    )
