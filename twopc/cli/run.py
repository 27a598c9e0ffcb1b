"""`twopc run`: run a job file until its input ends, or until it is stopped."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twopc.cli.completion import INLINE
from twopc.cli.output import JobOutput, JobOutputOption, LogFormatOption, LogLevel, LogLevelOption, Output
from twopc.cli.setting_options import run_options
from twopc.cli.shared_options import shared_options
from twopc.cli.spark_options import spark_conf
from twopc.cli.token_options import TokenFile, read_token
from twopc.config import RunSettings
from twopc.driver.processes import plain_processes_begun
from twopc.errors import ConfigurationError
from twopc.logs import configure_logging, prints_on_stderr

if TYPE_CHECKING:
    from twopc.cli.view import EventSink
    from twopc.driver.host import Host
    from twopc.driver.run import RunReport
    from twopc.graph import JobDefinition


@shared_options(given=run_options(leave_out=("log_level", "log_format")), spark_conf=spark_conf)
def run(
    job_file: Annotated[
        str, typer.Argument(help="The Python file that defines the job; FILE:NAME if it defines several.")
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the job's operators and how they are connected, and run nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors and the result.")] = False,
    output: JobOutputOption = JobOutput.TEXT,
    token_file: TokenFile = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    *,
    given: dict[str, Any],
    spark_conf: dict[str, str] | None,
) -> None:
    """Run a job exactly once, from Kafka to Kafka.

    The same command goes on where it must: after a crash, a kill -9 or a stop, it restores the latest completed
    checkpoint, commits what was pre-committed, and reads on. SIGTERM or Ctrl-C: a last checkpoint; again: at once.

    \b
    Example:
      twopc run upper.py --bootstrap-servers 127.0.0.1:9092 --checkpoint-dir checkpoints --until-end

    Every option can also come from the environment: TWOPC_BOOTSTRAP_SERVERS, TWOPC_CHECKPOINT_DIR, ...
    """
    if output is JobOutput.MERMAID and not explain:
        raise ConfigurationError("-o mermaid draws a job that is not run: add --explain")
    log_level, log_format = log_level or (LogLevel.ERROR if quiet else LogLevel.INFO), log_format or Output.TEXT
    configure_logging(log_level, log_format)
    settings = RunSettings.resolve(
        **given,
        spark_conf=spark_conf,
        coordinator_token=read_token(token_file),
        log_level=log_level.value,
        log_format=log_format.value,
    )
    if explain:
        typer.echo(_explained(_loaded(settings, job_file, log_format), output))
        return
    with plain_processes_begun(settings, job_file) as host:
        report = _run(_loaded(settings, job_file, log_format), settings, job_file, quiet, host)
    _print_report(report, output)


def _loaded(settings: RunSettings, job_file: str, log_format: Output) -> JobDefinition:
    """Load the job beside its modules; what it prints is no answer of the command."""
    from twopc.loader.job_loader import load_job
    from twopc.loader.py_files import use_py_files

    with prints_on_stderr(log_format):
        use_py_files(settings.py_files)
        return load_job(job_file)


def _run(definition: JobDefinition, settings: RunSettings, job_file: str, quiet: bool, host: Host | None) -> RunReport:
    from twopc.driver.run import run

    with prints_on_stderr(settings.log_format), _shown(definition.name, settings, quiet) as sink:
        on_event = None if sink is None else sink.note
        return run(definition, settings, on_event=on_event, job_file=job_file, host=host)


def _shown(job: str, settings: RunSettings, quiet: bool) -> AbstractContextManager[EventSink | None]:
    from twopc.cli.view import PlainLines, live_view

    if quiet:
        return nullcontext(None)
    # A debugger that runs in this process has the terminal to itself.
    if sys.stderr.isatty() and settings.log_format == Output.TEXT and settings.host != INLINE[0]:
        return live_view(job)
    return nullcontext(PlainLines(job))


def _explained(definition: JobDefinition, output: JobOutput) -> str:
    match output:
        case JobOutput.JSON:
            return json.dumps(definition.to_json())
        case JobOutput.MERMAID:
            return definition.mermaid()
        case _:
            return definition.describe()


def _print_report(report: RunReport, output: JobOutput) -> None:
    if output is JobOutput.JSON:
        typer.echo(json.dumps(asdict(report)))
        return
    from twopc.protocol.record_errors import texts_of

    how = "finished"
    if report.stopped:
        how = "stopped with a last checkpoint" if report.checkpoints_completed else "stopped, without a checkpoint"
    typer.echo(
        f"{report.job}: {how}; {report.records_in:,} records in, {report.records_out:,} out"
        f"{''.join(f', {text}' for text in texts_of(report.record_errors))}"
        f"{f' in the last of {report.attempts} attempts' if report.attempts > 1 else ''}; "
        f"{report.checkpoints_completed} checkpoint{'' if report.checkpoints_completed == 1 else 's'} completed"
        f"{f', the last {report.last_checkpoint_id}' if report.last_checkpoint_id else ''}; {report.seconds:.1f} s"
    )
