"""`twopc state`: read the state that a completed checkpoint holds. Reads only; safe beside a running job."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from twopc.cli.checkpoint_options import Checkpoint as CheckpointArgument
from twopc.cli.completion import checkpoint_names
from twopc.cli.output import Output, OutputOption
from twopc.cli.shared_options import shared_options
from twopc.cli.state_options import (
    CheckpointLocation,
    KeyAs,
    StateName,
    StateSource,
    checkpoint_location,
    is_json,
    state_source,
)
from twopc.cli.state_report import (
    change_line,
    change_row,
    entry_table,
    moved_positions,
    position_line,
    print_array,
    sizes_of,
    sizes_table,
    totals_of,
)
from twopc.cli.tables import print_tables
from twopc.errors import ConfigurationError, TwoPhaseCommitError
from twopc.inspect import Checkpoint, Difference, StateEntry
from twopc.inspect import diff as compare
from twopc.inspect.export import export_to, write_lines
from twopc.inspect.key_text import KeyForm, parse_key
from twopc.inspect.rows import row_of

app = typer.Typer(
    help="Read the state in a completed checkpoint, without the job, a coordinator or a broker. Changes nothing.\n\n"
    "Values are decoded as the job declared them; what nobody declared is shown as bytes, in JSON as base64.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command(name="list")
@shared_options(location=checkpoint_location)
def list_states(
    location: CheckpointLocation,
    checkpoint: CheckpointArgument = "latest",
    output: OutputOption = Output.TEXT,
) -> None:
    """List the states: how each is encoded, how many keys it has, and their bytes. Reads all of them.

    Example: twopc state list latest --checkpoint-dir checkpoints
    """
    with StateSource(location).open(checkpoint) as opened:
        sizes = list(sizes_of(opened))
    if output is Output.JSON:
        typer.echo(json.dumps(sizes))
    elif sizes:
        print_tables([sizes_table(sizes)])
    else:
        typer.echo(f"checkpoint {opened.checkpoint_id} of job {opened.job!r} holds no state")


@app.command()
@shared_options(source=state_source)
def get(
    source: StateSource,
    checkpoint: CheckpointArgument,
    state: Annotated[str, typer.Argument(help="The state: the id of its operator, for a stateful_map its name.")],
    key: Annotated[str, typer.Argument(help="The key, as the job has it.")],
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Only under this partition number.")
    ] = None,
    key_as: KeyAs = KeyForm.TEXT,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show the state of one key, under each partition number that has one. Exit code 1 if none has.

    \b
    Examples:
      twopc state get latest count LGA
      twopc state get 7 count 00ff --key-as hex --partition 0 -o json
    """
    wanted = parse_key(key, key_as)
    with source.open(checkpoint) as opened:
        source.refuse_unknown(opened)
        found = opened.state(state).find(wanted, partition)
    _show(found, output)
    if not found:
        where = "" if partition is None else f" under partition {partition}"
        if key_as is KeyForm.TEXT and is_json(key):
            where += " as text; for the JSON that this is say --key-as json"
        raise TwoPhaseCommitError(f"state {state!r} of checkpoint {opened.checkpoint_id} has no key {key!r}{where}")


@app.command()
@shared_options(source=state_source)
def scan(
    source: StateSource,
    checkpoint: CheckpointArgument,
    state: StateName = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Only keys that begin so; needs a state.")] = "",
    key_as: KeyAs = KeyForm.TEXT,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Show so many keys; 0 for all.")] = 100,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show keys with their values, by operator, partition number, state and key.

    \b
    Examples:
      twopc state scan latest
      twopc state scan latest count --prefix L --limit 0 -o json
    """
    with source.open(checkpoint) as opened:
        source.refuse_unknown(opened)
        entries = _chosen(opened, state, parse_key(prefix, key_as) if prefix else None)
        _show(islice(entries, limit or None), output)
        if limit and next(entries, None) is not None:
            typer.echo(f"there are more than {limit}: --limit 0 shows all, twopc state export writes them", err=True)


@app.command()
@shared_options(source=state_source)
def export(
    source: StateSource,
    checkpoint: CheckpointArgument,
    state: StateName = None,
    to: Annotated[
        Path, typer.Option("--to", help="FILE.jsonl, FILE.parquet, or - for JSON lines on standard output.")
    ] = Path("-"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    prefix: Annotated[str, typer.Option("--prefix", help="Only keys that begin so; needs a state.")] = "",
    key_as: KeyAs = KeyForm.TEXT,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write all state, or one, as JSON lines or Parquet: a row for each key, with the bytes of what is not text.

    The file appears under its name when it is whole.

    \b
    Examples:
      twopc state export latest --to counts.parquet
      twopc state export latest count --prefix L | head
    """
    with source.open(checkpoint) as opened:
        source.refuse_unknown(opened)
        entries = _chosen(opened, state, parse_key(prefix, key_as) if prefix else None)
        if str(to) == "-":
            write_lines(sys.stdout.buffer, entries)
            return
        _refuse_within(opened, to)
        rows = export_to(to, entries, replace=force)
    typer.echo(json.dumps({"file": str(to), "rows": rows}) if output is Output.JSON else f"{rows:,} rows in {to}")


@app.command()
@shared_options(source=state_source)
def diff(
    source: StateSource,
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="The earlier checkpoint: an id, a label, a path.", autocompletion=checkpoint_names
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The later one.", autocompletion=checkpoint_names)],
    state: StateName = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show which keys were added (+), removed (-) and changed (~) between two checkpoints, with old and new value.

    Exit code 0 if all state is the same, 1 if it differs, 2 or more if it could not be read. Positions are shown, but
    are no difference of state.

    \b
    Examples:
      twopc state diff 7 8
      twopc state diff before-upgrade latest count -o json
    """
    with _trouble_is_no_difference(), source.open(old) as before, source.open(new) as after:
        source.refuse_unknown(before, after)
        difference = compare(before, after, state)
        moved = moved_positions(before, after)
        if output is Output.JSON:
            typer.echo(f'{{"old": {before.checkpoint_id}, "new": {after.checkpoint_id},')
            typer.echo(f'"positions": {json.dumps(moved)},\n"changes": ', nl=False)
            print_array(map(change_row, difference))
            typer.echo(f",\n{json.dumps(totals_of(difference))[1:]}")
        else:
            _print_lines(difference, [position_line(row) for row in moved])
    if any(difference.counts.values()):
        raise typer.Exit(1)


def _print_lines(difference: Difference, positions: list[str]) -> None:
    for line in positions:
        typer.echo(line)
    for change in difference:
        typer.echo(change_line(change))
    typer.echo(", ".join(f"{count:,} {what}" for what, count in totals_of(difference).items()))


def _show(entries: Iterator[StateEntry] | list[StateEntry], output: Output) -> None:
    if output is Output.JSON:
        print_array(map(row_of, entries))
        typer.echo()
    elif rows := list(entries):
        print_tables([entry_table(rows)])


def _chosen(checkpoint: Checkpoint, state: str | None, prefix: Any) -> Iterator[StateEntry]:
    if state is not None:
        found = checkpoint.state(state)
        return found.items() if prefix is None else found.scan(prefix)
    if prefix is not None:
        raise ConfigurationError("--prefix needs a state: name it after the checkpoint; `twopc state list` lists them")
    return checkpoint.entries()


def _refuse_within(checkpoint: Checkpoint, to: Path) -> None:
    if f"{to.resolve()}/".startswith(f"{checkpoint.store.identity}/"):
        raise ConfigurationError(
            f"{to} would be in {checkpoint.store.place()}, where a file that is no checkpoint's looks like damage"
        )


class _NotCompared(TwoPhaseCommitError):
    """The state could not be read: said with another exit code than that it differs."""

    exit_code = 2


@contextmanager
def _trouble_is_no_difference() -> Iterator[None]:
    try:
        yield
    except (TwoPhaseCommitError, OSError) as error:
        if getattr(error, "exit_code", 1) != 1:
            raise
        raise _NotCompared(str(error)) from error
