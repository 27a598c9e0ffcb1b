"""`twopc run`: run a job file until its input ends, or until it is stopped."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from twopc.cli.output import JobOutput, JobOutputOption, LogFormatOption, LogLevel, LogLevelOption, Output
from twopc.cli.setting_options import run_options
from twopc.cli.shared_options import shared_options
from twopc.cli.spark_options import spark_conf
from twopc.cli.token_options import TokenFile, read_token
from twopc.config import RunSettings
from twopc.driver.processes import plain_processes_begun
from twopc.errors import ConfigurationError
from twopc.logs import configure_logging


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
        from twopc.cli.job_run import explained

        typer.echo(explained(settings, job_file, output))
        return
    with plain_processes_begun(settings, job_file) as host:
        from twopc.cli.job_run import print_report, run_job

        print_report(run_job(settings, job_file, quiet, host), output)
