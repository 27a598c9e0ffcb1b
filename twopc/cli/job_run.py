"""What `twopc run` does once it has its settings: loads the job, and explains or runs it.

All that it needs is imported with it: so workers start meanwhile, and before the job, whose folder is looked in first.
"""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict

import typer

from twopc.cli.completion import INLINE
from twopc.cli.output import JobOutput, Output
from twopc.cli.view import EventSink, PlainLines, live_view
from twopc.config import RunSettings
from twopc.driver.host import Host
from twopc.driver.run import RunReport, run
from twopc.graph import JobDefinition
from twopc.loader.job_loader import load_job
from twopc.loader.py_files import use_py_files
from twopc.logs import prints_on_stderr
from twopc.protocol.record_errors import texts_of


def run_job(settings: RunSettings, job_file: str, quiet: bool, host: Host | None) -> RunReport:
    """Run the job to its end, in sight of the user; `host` is where its subtasks run, unless the settings name it."""
    definition = _loaded(settings, job_file)
    with prints_on_stderr(settings.log_format), _shown(definition.name, settings, quiet) as sink:
        on_event = None if sink is None else sink.note
        return run(definition, settings, on_event=on_event, host=host)


def _loaded(settings: RunSettings, job_file: str) -> JobDefinition:
    """Load the job beside its modules; what it prints is no answer of the command."""
    with prints_on_stderr(settings.log_format):
        use_py_files(settings.py_files)
        return load_job(job_file)


def _shown(job: str, settings: RunSettings, quiet: bool) -> AbstractContextManager[EventSink | None]:
    if quiet:
        return nullcontext(None)
    # A debugger that runs in this process has the terminal to itself.
    if sys.stderr.isatty() and settings.log_format == Output.TEXT and settings.host != INLINE[0]:
        return live_view(job)
    return nullcontext(PlainLines(job))


def explained(settings: RunSettings, job_file: str, output: JobOutput) -> str:
    """Return the job as text, JSON or a drawing; nothing is run."""
    definition = _loaded(settings, job_file)
    match output:
        case JobOutput.JSON:
            return json.dumps(definition.to_json())
        case JobOutput.MERMAID:
            return definition.mermaid()
        case _:
            return definition.describe()


def print_report(report: RunReport, output: JobOutput) -> None:
    """Print the answer of the command."""
    if output is JobOutput.JSON:
        typer.echo(json.dumps(asdict(report)))
        return
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
