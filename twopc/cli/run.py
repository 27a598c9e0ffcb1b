"""`twopc run`: run a job file until its input ends, or until it is stopped."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Annotated, Any

import typer

from twopc.cli.completion import HOSTS, INLINE, MASTERS, one_of, restore_names
from twopc.cli.coordinator_options import CoordinatorCa, CoordinatorCert, CoordinatorKey, TokenFile, read_token
from twopc.cli.kafka_options import KafkaConfig
from twopc.cli.metrics_options import MetricsHost, MetricsPort, Traces
from twopc.cli.output import JobOutput, JobOutputOption, LogFormatOption, LogLevel, LogLevelOption, Output
from twopc.cli.shared_options import shared_options
from twopc.cli.spark_options import spark_options
from twopc.cli.view import EventSink, PlainLines, live_view
from twopc.config import RESTART_STRATEGIES, RunSettings
from twopc.driver.run import RunReport
from twopc.driver.run import run as run_job
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.loader.job_loader import load_job
from twopc.loader.py_files import use_py_files
from twopc.logs import configure_logging, prints_on_stderr
from twopc.protocol.record_errors import said_of


@shared_options(spark=spark_options)
def run(
    job_file: Annotated[
        str, typer.Argument(help="The Python file that defines the job; FILE:NAME if it defines several.")
    ],
    bootstrap_servers: Annotated[
        str | None,
        typer.Option("--bootstrap-servers", "-b", envvar="TWOPC_BOOTSTRAP_SERVERS", help="Kafka, HOST:PORT[,...]."),
    ] = None,
    kafka_config: KafkaConfig = None,
    checkpoint_dir: Annotated[
        str | None,
        typer.Option(envvar="TWOPC_CHECKPOINT_DIR", help="Where checkpoints are kept.", show_default="checkpoints"),
    ] = None,
    parallelism: Annotated[
        int | None,
        typer.Option("--parallelism", "-p", envvar="TWOPC_PARALLELISM", help="Number of subtasks.", show_default="1"),
    ] = None,
    checkpoint_interval: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_CHECKPOINT_INTERVAL", help="Time between checkpoints, as 500ms, 2s, 1m.", show_default="1s"
        ),
    ] = None,
    checkpoint_timeout: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_CHECKPOINT_TIMEOUT", help="A checkpoint that takes longer is aborted.", show_default="1m"
        ),
    ] = None,
    checkpoint_min_pause: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_CHECKPOINT_MIN_PAUSE",
            help="Least time from one checkpoint's end to the next.",
            show_default="0",
        ),
    ] = None,
    checkpoint_max_concurrent: Annotated[
        int | None,
        typer.Option(
            envvar="TWOPC_CHECKPOINT_MAX_CONCURRENT",
            help="How many checkpoints may be in flight; 1 with a minimum pause.",
            show_default="1",
        ),
    ] = None,
    checkpoint_tolerable_failures: Annotated[
        int | None,
        typer.Option(
            envvar="TWOPC_CHECKPOINT_TOLERABLE_FAILURES",
            help="How many checkpoints in a row may fail before the attempt does.",
            show_default="3",
        ),
    ] = None,
    checkpoint_inline_bytes: Annotated[
        int | None,
        typer.Option(
            envvar="TWOPC_CHECKPOINT_INLINE_BYTES",
            help="State of a subtask up to this size stands in the metadata instead of files; 0: always files.",
            show_default="20480",
        ),
    ] = None,
    heartbeat_timeout: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_HEARTBEAT_TIMEOUT",
            help="A subtask that is silent for longer fails its attempt: its machine froze, or is cut off.",
            show_default="30s",
        ),
    ] = None,
    checkpoints_retained: Annotated[
        int | None,
        typer.Option(
            envvar="TWOPC_CHECKPOINTS_RETAINED",
            help="How many completed checkpoints are kept, besides savepoints.",
            show_default="3",
        ),
    ] = None,
    batch_records_min: Annotated[
        int | None,
        typer.Option(
            envvar="TWOPC_BATCH_RECORDS_MIN",
            help="Least records to give to the functions at once, however slow they are.",
            show_default="1",
        ),
    ] = None,
    batch_records_max: Annotated[
        int | None,
        typer.Option(
            envvar="TWOPC_BATCH_RECORDS_MAX",
            help="Most records to give to the functions at once, however fast they are.",
            show_default="1000; 8000 of columns",
        ),
    ] = None,
    max_task_idle: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_MAX_TASK_IDLE",
            help="Where topics meet by key, how long one waits for another that has nothing to read.",
            show_default="0",
        ),
    ] = None,
    max_time_ahead: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_MAX_TIME_AHEAD",
            help="How far ahead of the clock a record may move stream time; beyond it follows on_error.",
            show_default="24h",
        ),
    ] = None,
    set_time_back: Annotated[
        bool | None,
        typer.Option(
            "--set-time-back",
            envvar="TWOPC_SET_TIME_BACK",
            help="Set stream time that is further ahead than that to the clock, and keep the state.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_MASTER",
            help="Spark's master.",
            show_default="spark-submit's, else local[*]",
            autocompletion=one_of(*MASTERS),
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_HOST",
            help="Where subtasks run: spark, process (no JVM), or inline (one, in this process: for breakpoints).",
            show_default="spark",
            autocompletion=one_of(*HOSTS, INLINE),
        ),
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(envvar="TWOPC_COORDINATOR", help="HOST:PORT of a coordinator to dial instead of an embedded one."),
    ] = None,
    token_file: TokenFile = None,
    coordinator_ca: CoordinatorCa = None,
    coordinator_cert: CoordinatorCert = None,
    coordinator_key: CoordinatorKey = None,
    restore_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            autocompletion=restore_names,
            envvar="TWOPC_RESTORE_FROM",
            help="latest, none, or a checkpoint or savepoint: id, label, or path (of an archive too).",
            show_default="latest",
        ),
    ] = None,
    accept_loss: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_ACCEPT_LOSS",
            metavar="NAMES",
            help="Go on without the output of these lost transactions (comma-separated, as the error names them).",
        ),
    ] = None,
    drop_states: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_DROP_STATES",
            metavar="NAMES",
            help="Delete the state of these operators, which the job no longer declares (comma-separated).",
        ),
    ] = None,
    drop_inputs: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_DROP_INPUTS",
            metavar="TOPICS",
            help="Give up the positions in these topics, which the job no longer reads (comma-separated).",
        ),
    ] = None,
    accept_gap: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_ACCEPT_GAP",
            metavar="GAPS",
            help="Go on without input that was deleted before it was read, or lost since: TOPIC[P]@FROM-TO, ....",
        ),
    ] = None,
    restart_strategy: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_RESTART_STRATEGY",
            autocompletion=one_of(*RESTART_STRATEGIES),
            help="After a failure: exponential-delay, fixed-delay or none.",
            show_default="exponential-delay",
        ),
    ] = None,
    restart_attempts: Annotated[
        int | None,
        typer.Option(envvar="TWOPC_RESTART_ATTEMPTS", help="Restarts in a row before giving up.", show_default="10"),
    ] = None,
    until_end: Annotated[
        bool | None,
        typer.Option("--until-end", help="Read to the end offsets found at the start, then exit.", show_default=False),
    ] = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    traces: Traces = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the job's operators and how they are connected, and run nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors and the result.")] = False,
    output: JobOutputOption = JobOutput.TEXT,
    *,
    spark: dict[str, Any],
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
        bootstrap_servers=bootstrap_servers,
        kafka_config=None if kafka_config is None else str(kafka_config),
        checkpoint_dir=checkpoint_dir,
        parallelism=parallelism,
        checkpoint_interval=checkpoint_interval,
        checkpoint_timeout=checkpoint_timeout,
        checkpoint_min_pause=checkpoint_min_pause,
        checkpoint_max_concurrent=checkpoint_max_concurrent,
        checkpoint_tolerable_failures=checkpoint_tolerable_failures,
        checkpoint_inline_bytes=checkpoint_inline_bytes,
        heartbeat_timeout=heartbeat_timeout,
        checkpoints_retained=checkpoints_retained,
        batch_records_min=batch_records_min,
        batch_records_max=batch_records_max,
        max_task_idle=max_task_idle,
        max_time_ahead=max_time_ahead,
        set_time_back=set_time_back,
        master=master,
        **spark,
        host=host,
        coordinator=coordinator,
        coordinator_token=read_token(token_file),
        coordinator_ca=coordinator_ca,
        coordinator_cert=coordinator_cert,
        coordinator_key=coordinator_key,
        restore_from=restore_from,
        accept_loss=accept_loss,
        drop_states=drop_states,
        drop_inputs=drop_inputs,
        accept_gap=accept_gap,
        restart_strategy=restart_strategy,
        restart_attempts=restart_attempts,
        until_end=until_end,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        traces=traces,
        log_level=log_level.value,
        log_format=log_format.value,
    )
    definition = _loaded(settings, job_file, log_format)
    if explain:
        typer.echo(_explained(definition, output))
        return
    _print_report(_run(definition, settings, job_file, quiet), output)


def _loaded(settings: RunSettings, job_file: str, log_format: Output) -> JobDefinition:
    """Load the job beside its modules; what it prints is no answer of the command."""
    with prints_on_stderr(log_format):
        use_py_files(settings.py_files)
        return load_job(job_file)


def _run(definition: JobDefinition, settings: RunSettings, job_file: str, quiet: bool) -> RunReport:
    with prints_on_stderr(settings.log_format), _shown(definition.name, settings, quiet) as sink:
        return run_job(definition, settings, on_event=None if sink is None else sink.note, job_file=job_file)


def _shown(job: str, settings: RunSettings, quiet: bool) -> AbstractContextManager[EventSink | None]:
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
    how = "finished"
    if report.stopped:
        how = "stopped with a last checkpoint" if report.checkpoints_completed else "stopped, without a checkpoint"
    typer.echo(
        f"{report.job}: {how}; {report.records_in:,} records in, {report.records_out:,} out"
        f"{''.join(f', {said}' for said in said_of(report.record_errors))}"
        f"{f' in the last of {report.attempts} attempts' if report.attempts > 1 else ''}; "
        f"{report.checkpoints_completed} checkpoint{'' if report.checkpoints_completed == 1 else 's'} completed"
        f"{f', the last {report.last_checkpoint_id}' if report.last_checkpoint_id else ''}; {report.seconds:.1f} s"
    )
