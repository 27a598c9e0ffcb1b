"""Stored state as people see it, in tables and lines, and as one JSON document that is written as it comes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import typer
from rich.table import Table

from twopc.cli.tables import size_text, table
from twopc.errors import UserCodeError
from twopc.inspect import ChangeKind, Checkpoint, Difference, KeyChange, StateEntry
from twopc.inspect.rows import Row, plain, row_of, value_of
from twopc.protocol.facts import shown_position
from twopc.state.layout import StateName

_SIGNS = {ChangeKind.ADDED: "+", ChangeKind.REMOVED: "-", ChangeKind.CHANGED: "~"}


def sizes_of(checkpoint: Checkpoint) -> Iterator[Row]:
    """Return each state with its size, and how it is encoded."""
    for name in checkpoint.states:
        state, serde = checkpoint.state(name), checkpoint.serde(name)
        size = state.size()
        yield {
            "operator": state.name.operator,
            "state": state.name.name,
            "serde": None if serde is None else str(serde),
            "keys": size.keys,
            "size_bytes": size.size_bytes,
        }


def sizes_table(sizes: Iterable[Row], title: str | None = None) -> Table:
    """Return how many keys and bytes each state has, one state a row."""
    rows = [
        (
            str(StateName(size["operator"], size["state"])),
            size["serde"] or "not known",
            f"{size['keys']:,}",
            size_text(size["size_bytes"]),
        )
        for size in sizes
    ]
    return table(title, ("state", "serde", "keys", "size"), rows)


def entry_table(entries: Iterable[StateEntry]) -> Table:
    """Return stored values with state, partition number and key, one a row."""
    rows = [
        (_shown(str(entry.state)), _place(entry), "" if entry.partition is None else _key(entry), _value(entry))
        for entry in entries
    ]
    return table(None, ("state", "partition", "key", "value"), rows)


def change_line(change: KeyChange) -> str:
    """Return one change, as `+ count 0 "LGA" 3`."""
    entry = change.entry
    values = " -> ".join(_value(each) for each in (change.old, change.new) if each is not None)
    return " ".join((_SIGNS[change.kind], _shown(str(entry.state)), _place(entry), _key(entry), values))


def change_row(change: KeyChange) -> Row:
    """Return one change for JSON; the subtask is the one that has the key now, or had it last."""
    address = {name: value for name, value in row_of(change.entry).items() if name not in _OF_VALUE}
    both = {"old": change.old, "new": change.new}
    return {
        "change": change.kind,
        **address,
        **{side: None if entry is None else value_of(entry) for side, entry in both.items()},
    }


_OF_VALUE = frozenset({"value", "value_base64", "problem"})


def moved_positions(old: Checkpoint, new: Checkpoint) -> list[Row]:
    """Return each split of the input whose position is not the same in both."""
    before, after = ({held.split: shown_position(held.position) for held in one.positions} for one in (old, new))
    return [
        {"split": each, "old": before.get(each), "new": after.get(each)}
        for each in sorted({*before, *after})
        if before.get(each) != after.get(each)
    ]


def position_line(moved: Row) -> str:
    """Return how the position of one split has moved, as `position of in[0]: 3 -> 5`."""
    old, new = ("none" if moved[side] is None else moved[side] for side in ("old", "new"))
    return f"  position of {_shown(moved['split'])}: {old} -> {new}"


def totals_of(difference: Difference) -> Row:
    """Return how many keys of each kind of change there are, and how many are the same."""
    return {**{kind.value: count for kind, count in difference.counts.items()}, "same": difference.same}


def print_array(rows: Iterable[Row], indent: str = "") -> None:
    """Write a JSON array, a row a line, each as it comes."""
    separator = "["
    for row in rows:
        typer.echo(separator)
        typer.echo(indent + json.dumps(row, ensure_ascii=False, allow_nan=False), nl=False)
        separator = ","
    typer.echo("[]" if separator == "[" else "\n]", nl=False)


def _place(entry: StateEntry) -> str:
    return f"of subtask {entry.subtask}" if entry.partition is None else str(entry.partition)


def _key(entry: StateEntry) -> str:
    text, key = entry.key_text, entry.key
    if text is None and not isinstance(key, bytes):
        return f"{_shown(json.dumps(key, ensure_ascii=False))} (json)"
    return repr(key) if text is None or not text.isprintable() else text


def _value(entry: StateEntry) -> str:
    try:
        value: Any = entry.value
    except UserCodeError:
        return f"{entry.raw!r}, which is not {entry.serde}"
    return repr(value) if isinstance(value, bytes) else _shown(json.dumps(plain(value), ensure_ascii=False))


def _shown(text: str) -> str:
    """Return the text with what a terminal would act upon escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
