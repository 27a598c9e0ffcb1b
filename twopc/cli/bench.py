"""`twopc bench`: how fast a job is here, on generated records."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from twopc.bench import report
from twopc.bench.plan import BenchPlan
from twopc.bench.result import BenchResult, compare, differing
from twopc.bench.run import bench as run_bench
from twopc.bench.run import input_of, refuse_tables_elsewhere
from twopc.cli.completion import HOSTS
from twopc.cli.output import Output, OutputOption, check_target
from twopc.cli.setting_options import Meaning, option_of, run_options
from twopc.cli.shared_options import shared_options
from twopc.cli.signals import interruptible
from twopc.cli.view import live_view
from twopc.config import RunSettings
from twopc.errors import TwoPhaseCommitError
from twopc.storage.scratch_folder import scratch_folder
from twopc.testing.local_broker import LocalBroker, end_broker_of

UPPER = str(Path(report.__file__).with_name("upper.py"))


MEANINGS = {"host": Meaning("Where subtasks run: spark, or process (no JVM).", HOSTS)}


@shared_options(given=run_options("parallelism", "checkpoint_interval_ms", "master", "host", meanings=MEANINGS))
def bench(
    job_file: Annotated[
        str, typer.Argument(help="The job, as for twopc run; upper-cased bytes unless given.", show_default=False)
    ] = UPPER,
    bootstrap_servers: Annotated[
        str | None,
        option_of(
            "bootstrap_servers",
            Meaning("Kafka, HOST:PORT[,...]; without it a local Kafka is started for the run (needs Java)."),
        ),
    ] = None,
    records: Annotated[int, typer.Option(help="How many records.")] = 1_000_000,
    record_bytes: Annotated[int, typer.Option(help="How long each generated value is.")] = 100,
    keys: Annotated[int, typer.Option(help="How many distinct keys; 0 for records without a key.")] = 1_000,
    partitions: Annotated[int, typer.Option(help="Partitions of input and output.")] = 4,
    rate: Annotated[
        int | None, typer.Option(help="Produce so many records a second beside the job, and measure latency.")
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(help="A file whose lines are the values; else they are made for the job's serde.")
    ] = None,
    save: Annotated[Path | None, typer.Option("--json", help="Write the result here, for --compare.")] = None,
    earlier: Annotated[
        Path | None, typer.Option("--compare", help="A result that --json wrote: say what is better and worse.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors and the result.")] = False,
    output: OutputOption = Output.TEXT,
    *,
    given: dict[str, Any],
) -> None:
    """Measure a job on generated records: throughput, CPU, checkpoints, memory; with --rate also latency.

    The job runs as it is, but under another name, and reads and writes topics of the benchmark's own, which are deleted
    afterwards. Nothing of the real job is touched.

    \b
    Examples:
      twopc bench
      twopc bench job.py -b 127.0.0.1:9092 --records 5000000 --json before.json
      twopc bench job.py -b 127.0.0.1:9092 --records 5000000 --compare before.json
      twopc bench job.py --rate 1000 --records 30000 --checkpoint-interval 500ms
    """
    logging.basicConfig(level=logging.ERROR if quiet else logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    plan = BenchPlan(
        job_file=job_file,
        records=records,
        record_bytes=record_bytes,
        keys=keys,
        partitions=partitions,
        rate=rate,
        sample=sample,
    )
    before = None if earlier is None else BenchResult.read(earlier)
    check_target("--json", save)
    settings = RunSettings.resolve(**given)
    values = input_of(plan)
    if not bootstrap_servers:
        refuse_tables_elsewhere(plan)
    with interruptible(), _broker(bootstrap_servers, quiet) as (servers, excluded):
        shown = live_view("bench") if sys.stderr.isatty() and not quiet else nullcontext(None)
        with shown as view:
            result = run_bench(
                plan,
                values,
                replace(settings, bootstrap_servers=servers),
                say=lambda what: _say(what, quiet),
                on_event=None if view is None else view.note,
                excluded=excluded,
            )
    compared = [] if before is None else compare(result, before)
    differ = {} if before is None else differing(result, before)
    if output is Output.JSON:
        against = (
            {} if before is None else {"compared": [asdict(comparison) for comparison in compared], "not_alike": differ}
        )
        typer.echo(json.dumps(result.to_json() | against))
    else:
        typer.echo(report.text(result, compared, differ))
    if save is not None:
        result.write(save)
    if not result.exact:
        raise TwoPhaseCommitError(f"{result.written:,} records were written, but {result.visible:,} are visible")


@contextmanager
def _broker(servers: str | None, quiet: bool) -> Iterator[tuple[str, frozenset[int]]]:
    """The brokers to use, and the processes that are not to be measured."""
    if servers:
        yield servers, frozenset()
        return
    _say("starting a local Kafka", quiet)
    with scratch_folder("bench-kafka", before_sweep=end_broker_of) as folder, LocalBroker(folder) as broker:
        yield broker.bootstrap_servers, frozenset(node.pid for node in broker.nodes if node.pid)


def _say(what: str, quiet: bool) -> None:
    if not quiet:
        typer.echo(f"bench: {what}", err=True)
