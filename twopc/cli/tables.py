"""Tables, times and sizes, as commands write them for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime

from rich.console import Console
from rich.table import Table

_WIDTH_WITHOUT_TERMINAL = 160


def table(title: str | None, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table; a row may be shorter than the heads."""
    made = Table(title=title, title_justify="left")
    for head in heads:
        made.add_column(head, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def moment(unix_ms: int) -> str:
    """A time as it was here, to the millisecond; what no calendar holds stays a number."""
    try:
        return datetime.fromtimestamp(unix_ms / 1000).astimezone().isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"


def size_text(size_bytes: int) -> str:
    """Return a number of bytes in the unit that keeps it short."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def print_tables(tables: Iterable[Table]) -> None:
    """Write tables to standard output, wide enough to be searched where that is no terminal."""
    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    console = Console(width=width, markup=False, highlight=False)
    for each in tables:
        console.print(each)
