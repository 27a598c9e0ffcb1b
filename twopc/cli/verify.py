"""`twopc verify`: judges an output topic against its input, from outside."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from twopc.cli.kafka_options import BootstrapServers, KafkaConfig
from twopc.cli.output import Output
from twopc.cli.setting_options import Meaning, option_of
from twopc.cli.tables import print_tables, table
from twopc.config import RunSettings
from twopc.errors import NotJudged, TwoPhaseCommitError
from twopc.kafka.clients.config_file import read_kafka_config
from twopc.listing import listed
from twopc.loader.job_loader import in_its_folder, load_job
from twopc.protocol.record_errors import texts_of
from twopc.verify.findings import Kind, Verdict
from twopc.verify.junit import junit as junit_text
from twopc.verify.plan import VerifyPlan, plan_of
from twopc.verify.report import as_json
from twopc.verify.run import ProgressCallback, Report
from twopc.verify.run import verify as run_verify

BROKEN = 1


def verify(
    map_: Annotated[
        str | None,
        typer.Option(
            "--map", metavar="JOB_FILE", help="The job that makes the output of the input; without it, it is a copy."
        ),
    ] = None,
    input_: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="[OPERATOR=]TOPIC",
            help="The job's own input unless given; repeatable. Say of which, in a job of several sources.",
        ),
    ] = None,
    output_topic: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="[OPERATOR=]TOPIC",
            help="The job's own unless given; repeatable. In a job of several sinks: only these; OPERATOR=TOPIC: "
            "another in the place of its own.",
        ),
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka_config: KafkaConfig = None,
    running: Annotated[
        bool, typer.Option("--running", help="The job still runs: judge up to the positions of its group.")
    ] = False,
    drained: Annotated[
        bool,
        typer.Option("--drained", help="The job was drained behind its last record: windows are closed, timers fired."),
    ] = False,
    read_uncommitted: Annotated[
        bool, typer.Option("--read-uncommitted", help="Judge what a reader sees that heeds no transactions.")
    ] = False,
    max_time_ahead: Annotated[
        str | None,
        option_of(
            "max_time_ahead_ms",
            Meaning("As the job's runs have it. What was too far ahead of the clock then may not be by now."),
        ),
    ] = None,
    examples: Annotated[int, typer.Option(help="How many findings of each kind are shown.")] = 10,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result here as JUnit's XML.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors and the result.")] = False,
    output: Annotated[Output, typer.Option("-o", help="How the answer is written.")] = Output.TEXT,
) -> None:
    """Judge a job's output against its input: is every record there, once, in order, as the job makes it?

    The input is read and put through the job's own operators, offline; then the output is read as a read_committed
    consumer sees it, and compared. Neither the job nor its checkpoints nor its group are touched. Exit code 0: all
    promises held. 1: one was broken; the findings say which and where. 2: it could not be judged, and why.

    \b
    Examples:
      twopc verify --map job.py -b 127.0.0.1:9092
      twopc verify --map job.py --input orders --output invoices -o json --junit verify.xml
      twopc verify --input orders --output orders-copy
    """
    try:
        settings = RunSettings.resolve(bootstrap_servers=bootstrap_servers, max_time_ahead=max_time_ahead)
        definition = None if map_ is None else load_job(map_)
        plan = plan_of(
            definition,
            tuple(input_ or ()),
            tuple(output_topic or ()),
            settings.bootstrap_servers,
            running=running,
            drained=drained,
            committed=not read_uncommitted,
            examples=examples,
            max_time_ahead_ms=settings.max_time_ahead_ms,
            access=read_kafka_config(kafka_config),
        )
        with _watched(quiet) as watch, in_its_folder(definition):
            report = run_verify(plan, watch)
        if junit is not None:
            junit.write_text(junit_text(report), "utf-8")
    except (TwoPhaseCommitError, OSError) as error:
        raise NotJudged(str(error)) from error
    if output is Output.JSON:
        typer.echo(json.dumps(as_json(report)))
    else:
        _show(plan, report)
    if not report.held:
        raise typer.Exit(BROKEN)


@contextmanager
def _watched(quiet: bool) -> Iterator[ProgressCallback]:
    """Show how far the reading is, where somebody can see it."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    columns = (TextColumn("reading the {task.description}"), BarColumn(), TextColumn("{task.completed:,} records"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks = {what: progress.add_task(what, total=None) for what in ("input", "output")}
        yield lambda what, done, total: progress.update(tasks[what], completed=done, total=total)


def _show(plan: VerifyPlan, report: Report) -> None:
    for reason in report.left_out:
        typer.echo(f"note: {reason}")
    for reason in report.unseen:
        typer.echo(f"not judged: {reason}")
    if report.record_errors:
        typer.echo(f"went wrong and is left out, as its policy says: {'; '.join(texts_of(report.record_errors))}")
    for verdict in report.verdicts:
        rows = [(kind.value, f"{count:,}", kind.meaning) for kind in Kind if (count := verdict.counts.get(kind))]
        if rows:
            print_tables([table(None, (verdict.topic, "records", "meaning"), rows)])
        for finding in verdict.findings:
            typer.echo(f"  {finding}")
        typer.echo(_summary(plan, report, verdict))


def _summary(plan: VerifyPlan, report: Report, verdict: Verdict) -> str:
    parts = [
        f"{verdict.topic}: {'all promises held' if verdict.held else 'a promise was broken'}",
        f"{report.records_in:,} records of {listed(plan.topics)} make {verdict.expected:,}",
        f"found {verdict.found:,}, of them right {verdict.matched:,}",
    ]
    if verdict.pending:
        parts.append(f"{verdict.pending:,} more are still to come")
    if verdict.unordered_keys:
        parts.append(
            f"the order of {verdict.unordered_keys:,} keys, of records that look the same, could not be judged whole"
        )
    return f"{'; '.join(parts)}; {report.seconds:.1f} s"
