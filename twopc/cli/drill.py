"""`twopc drill`: recovery, practised on a saved checkpoint of a real job."""

from __future__ import annotations

import json
import logging
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from twopc import events
from twopc.cli.completion import HOSTS, checkpoint_names
from twopc.cli.output import Output, OutputOption, check_target
from twopc.cli.setting_options import Meaning, option_of, run_options
from twopc.cli.shared_options import shared_options
from twopc.cli.signals import interruptible
from twopc.cli.view import live_view
from twopc.config import RunSettings
from twopc.drill import report
from twopc.drill.fault_drill import fault_drill
from twopc.drill.fault_drill_plan import PARALLELISM, FaultDrillPlan
from twopc.drill.load import Load
from twopc.drill.restore import RestorePlan, restore_drill
from twopc.drill.verdict import Exit
from twopc.drill.version_drill import VersionPlan, version_drill
from twopc.duration import duration_ms
from twopc.errors import ConfigurationError, TwoPhaseCommitError
from twopc.kafka.clients.config_file import read_kafka_config

SETTINGS = ("bootstrap_servers", "kafka_config", "master", "host", "drop_states", "drop_inputs")
MEANINGS = {
    "master": Meaning("Spark's master, a local one.", default="local[*]"),
    "host": Meaning("Where subtasks run: spark, or process (no JVM).", HOSTS),
    "drop_states": Meaning("As for twopc run: states to leave behind."),
    "drop_inputs": Meaning("As for twopc run: inputs to give up."),
}


@shared_options(given=run_options(*SETTINGS, meanings=MEANINGS))
def drill(
    job_file: Annotated[str, typer.Argument(help="The job, as for twopc run.")],
    checkpoint_dir: Annotated[
        str, option_of("checkpoint_dir", Meaning("The job's checkpoints; they are only read."))
    ] = "checkpoints",
    restore_from: Annotated[
        str,
        typer.Option(
            "--from",
            help="latest, or a checkpoint or savepoint: id, label, or path (of an archive too).",
            autocompletion=checkpoint_names,
        ),
    ] = "latest",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER_JOB.py",
            help="Another version of the job: compare what both make of the input, instead of a restore.",
        ),
    ] = None,
    faults: Annotated[int, typer.Option(help="Drill so many faults, instead of a restore.")] = 0,
    seed: Annotated[
        int | None, typer.Option(help="Draw the faults from this seed, to play a plan again.", show_default="any")
    ] = None,
    records: Annotated[int, typer.Option(help="With --faults: how many records.")] = 5_000,
    sample: Annotated[
        Path | None,
        typer.Option(help="With --faults: a file whose lines are the values; else made for the job's serde."),
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="With --faults and brokers: take the newest records of the real input.")
    ] = False,
    parallelism: Annotated[
        int | None,
        typer.Option("--parallelism", "-p", help="Number of subtasks.", show_default="the checkpoint's own"),
    ] = None,
    max_recovery: Annotated[
        str | None,
        typer.Option(help="Fail the drill if a recovery takes longer, as 10s: from a fault, or until caught up."),
    ] = None,
    interrupt: Annotated[
        bool,
        typer.Option("--interrupt/--no-interrupt", help="Kill every process of the replay once, in its middle."),
    ] = True,
    checkpoint_interval: Annotated[
        str | None, typer.Option(help="Time between checkpoints of the scratch run, as 500ms, 1s.", show_default="1s")
    ] = None,
    scratch_dir: Annotated[
        Path | None,
        typer.Option(help="Where copies of checkpoints go, and are deleted afterwards.", show_default="TMPDIR"),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the checks here, as JUnit XML for CI.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors and the result.")] = False,
    output: OutputOption = Output.TEXT,
    *,
    given: dict[str, Any],
) -> None:
    """Practise recovery: restore a saved checkpoint of the job in a scratch run, replay to the end, and judge it.

    Nothing of the real job is touched, running or not: the scratch run has its own output topic, transactional ids,
    consumer group and copy of the checkpoint, all of which are deleted afterwards. The real checkpoints, topics and
    transactions are only looked at.

    With --faults, the job runs on scratch topics while processes are killed, streams cut and files damaged, each at a
    named step of the protocol. Without brokers a local Kafka is started, and struck too; others are left alone.

    With --against, nothing runs: what two versions of the job make of the input since the checkpoint is worked out and
    compared, and the records in which they differ are named.

    Exit code: 0 if all held, 1 if a promise was broken or the versions differ, 2 if the drill could not run.

    \b
    Examples:
      twopc drill job.py -b 127.0.0.1:9092 --checkpoint-dir checkpoints
      twopc drill job.py -b 127.0.0.1:9092 --from 41 --junit drill.xml -o json
      twopc drill job.py --against new/job.py -b 127.0.0.1:9092 --checkpoint-dir checkpoints
      twopc drill job.py --faults 10 --seed 7
    """
    _log_errors(brokers_are_struck=faults > 0)
    kind = "fault" if faults else "restore" if against is None else "version"
    try:
        _clear_target(junit)
        _refuse_beside_against(against, {"--faults": faults, "--max-recovery": max_recovery})
        settings = RunSettings.resolve(
            checkpoint_interval=checkpoint_interval or ("200ms" if faults else None), **given
        )
        most = None if max_recovery is None else _seconds(max_recovery)
        access = read_kafka_config(Path(settings.kafka_config) if settings.kafka_config else None)
        with interruptible(), _shown(quiet) as view:
            listener = _Listener(lambda what: _say(what, quiet), None if view is None else view.note)
            if faults:
                chosen = _seed(seed, listener.say)
                load = Load(records=records, sample=sample, copy=copy)
                size = PARALLELISM if parallelism is None else parallelism
                fault_plan = FaultDrillPlan(job_file, faults, chosen, load, size, scratch_dir, access, most)
                result = fault_drill(fault_plan, settings, say=listener.say, on_event=listener.on_event)
            elif against is not None:
                version_plan = VersionPlan(job_file, against, checkpoint_dir, restore_from, scratch_dir, access)
                result = version_drill(version_plan, settings, say=listener.say)
            else:
                plan = RestorePlan(
                    job_file, checkpoint_dir, restore_from, parallelism, scratch_dir, access, interrupt, most
                )
                result = restore_drill(plan, settings, say=listener.say, on_event=listener.on_event)
        if junit is not None:
            junit.write_text(report.junit(result), "utf-8")
    except (TwoPhaseCommitError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        _write_failure(kind, str(error), junit, output)
        raise typer.Exit(Exit.COULD_NOT_RUN) from error
    typer.echo(json.dumps(result.to_json()) if output is Output.JSON else report.text(result))
    raise typer.Exit(result.exit_code)


def _log_errors(*, brokers_are_struck: bool) -> None:
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    # A broker that is struck on purpose is no news.
    logging.getLogger("kafka").setLevel(logging.CRITICAL if brokers_are_struck else logging.ERROR)


def _seed(seed: int | None, say: Callable[[str], None]) -> int:
    chosen = secrets.randbelow(1_000_000) if seed is None else seed
    say(f"seed {chosen}: the same --seed and --faults play this plan again")
    return chosen


def _clear_target(junit: Path | None) -> None:
    """What an earlier drill has left must not be taken for the report of this one."""
    check_target("--junit", junit)
    if junit is not None:
        junit.unlink(missing_ok=True)


def _refuse_beside_against(against: str | None, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if against is not None and value:
            raise ConfigurationError(f"--against compares two versions, which takes no {option}: leave one of them out")


@dataclass(frozen=True, slots=True)
class _Listener:
    """The listener to a drill's progress."""

    say: Callable[[str], None]
    on_event: Callable[[events.Event], None] | None


def _seconds(written: str) -> float:
    try:
        return duration_ms(written) / 1000
    except ValueError as error:
        raise ConfigurationError(f"--max-recovery: {error}") from error


def _write_failure(drill: str, error: str, junit: Path | None, output: Output) -> None:
    """Say it where a script looks for the result."""
    if junit is not None:
        with suppress(OSError):
            junit.write_text(report.junit_of_failure(drill, error), "utf-8")
    if output is Output.JSON:
        typer.echo(json.dumps({"drill": drill, "held": False, "exit_code": int(Exit.COULD_NOT_RUN), "error": error}))


def _shown(quiet: bool) -> Any:
    if quiet or not sys.stderr.isatty():
        return nullcontext(None)
    return live_view("drill")


def _say(what: str, quiet: bool) -> None:
    if not quiet:
        typer.echo(f"drill: {what}", err=True)
