"""The command line: one app, one place that turns errors into one message and an exit code.

A command's module is imported when the command is named, so that `twopc version` does not wait for what `twopc run`
needs.
"""

from __future__ import annotations

import logging
import os
import select
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from twopc.config import name_unknown_variables, require_assertions
from twopc.errors import DEBUG_VARIABLE, TwoPhaseCommitError, Unavailable
from twopc.logs import writes_json

#: Command and the module that defines it, as a function of the same name or as an `app` of subcommands.
_COMMANDS = {
    "run": "twopc.cli.run",
    "jobs": "twopc.cli.jobs",
    "savepoint": "twopc.cli.trigger",
    "stop": "twopc.cli.stop",
    "checkpoints": "twopc.cli.checkpoints",
    "state": "twopc.cli.state",
    "coordinator": "twopc.cli.coordinator",
    "ui": "twopc.cli.ui",
    "verify": "twopc.cli.verify",
    "topics": "twopc.cli.topics",
    "dead-letters": "twopc.cli.dead_letters",
    "produce": "twopc.cli.produce",
    "bench": "twopc.cli.bench",
    "broker": "twopc.cli.broker",
    "drill": "twopc.cli.drill",
    "version": "twopc.cli.version",
}


_WITH_LOGS = ("run", "coordinator")
"""They say themselves what is wrong with the environment, in the form that they are told to write."""


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Of one that is not its output's, click would say nothing.
            if _is_read():
                raise Unavailable(f"{error}: a process or server that this one writes to has ended") from error
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(_COMMANDS[cmd_name])
        commands = getattr(module, "app", None)
        if commands is None:
            commands = typer.Typer(add_completion=False)
            commands.command(cmd_name)(getattr(module, cmd_name))
        commands.rich_markup_mode = None
        command = typer.main.get_command(commands)
        command.name = cmd_name
        return command


def _is_read() -> bool:
    """Whether the output of this process has its readers still: `head`, say, goes when it has enough."""
    output = select.poll()
    for stream in (1, 2):
        output.register(stream, 0)
    return not any(event & select.POLLERR for _, event in output.poll(0))


app = typer.Typer(
    name="twopc",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"twopc {version_of('twopc-streams')}")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG_VARIABLE, help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Exactly-once stream jobs from Kafka to Kafka: checkpointed two-phase commit, on Spark.

    Try it on this machine, in a new folder; it needs Java 17 or newer for the broker:

    \b
      twopc broker start --data-dir kafka --port 9092
      export TWOPC_BOOTSTRAP_SERVERS=127.0.0.1:9092
      twopc topics create in out
      twopc produce --topic in --records 1000
      echo 'from twopc import Job, KafkaSink, KafkaSource; job = Job("upper")' > upper.py
      echo 'stream = job.source(KafkaSource("in")).map(bytes.upper)' >> upper.py
      echo 'stream.sink(KafkaSink("out"))' >> upper.py
      twopc run upper.py --host process --until-end
      twopc topics read out --max-records 3
      twopc checkpoints list
      twopc broker stop --data-dir kafka

    What can be told by an option can also come from the environment: TWOPC_BOOTSTRAP_SERVERS, TWOPC_CHECKPOINT_DIR, ...
    """
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    if ctx.invoked_subcommand not in _WITH_LOGS:
        name_unknown_variables()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a known error becomes one message and its exit code, with no traceback unless asked for.

    `arguments` are the process's own unless they are given.
    """
    try:
        require_assertions()
        app() if arguments is None else app(list(arguments), prog_name="twopc")
    except (TwoPhaseCommitError, OSError) as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        if writes_json():
            logging.getLogger("twopc").error(str(error))
        else:
            sys.stderr.write(f"error: {error}\n")
        sys.exit(getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        sys.exit(130)
