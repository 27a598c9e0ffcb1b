"""The live view of a run on a terminal, and its plain-text twin for everything else."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from twopc.cli.view_state import NOTED, RunView
from twopc.protocol.job_events import JobEvent

LINE_SECONDS = 2.0


class EventSink(Protocol):
    """Something that is shown a run's events."""

    def note(self, event: JobEvent) -> None: ...


@contextmanager
def live_view(job: str, console: Console) -> Iterator[EventSink]:
    """Show the run on a terminal, four times a second, until the context ends."""
    screen = _Screen(RunView(job))
    with Live(get_renderable=screen.render, console=console, refresh_per_second=4, transient=False):
        yield screen


class _Screen:
    """Folds events in on one thread while another draws."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._lock = threading.Lock()

    def note(self, event: JobEvent) -> None:
        with self._lock:
            self._view.note(event)

    def render(self) -> RenderableType:
        with self._lock:
            return render(self._view)


class PlainLines:
    """Lines on standard error: what is worth a line at once, the progress every two seconds."""

    def __init__(self, job: str) -> None:
        self._view = RunView(job)
        self._last_line = 0.0

    def note(self, event: JobEvent) -> None:
        self._view.note(event)
        if event.kind in NOTED:
            self._write(NOTED[event.kind].format(event=event))
        elif event.kind == "aborted":
            what = f"checkpoint {event.checkpoint_id}" if event.checkpoint_id else f"requested {event.checkpoint_kind}"
            self._write(f"{what} aborted: {event.message}")
        elif event.kind == "completed" and time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            view = self._view
            lag = "unknown" if view.lag is None else f"{view.lag:,}"
            self._write(
                f"checkpoint {event.checkpoint_id} completed in {event.duration_ms:.0f} ms; "
                f"{view.records_in:,} in, {view.records_out:,} out, {view.rate:,.0f}/s, lag {lag}"
            )

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{self._view.job}: {text}\n")
        sys.stderr.flush()


def render(view: RunView) -> RenderableType:
    """Draw the whole view."""
    lag = "unknown" if view.lag is None else f"{view.lag:,}"
    head = Text.assemble(
        (f" {view.job} ", "bold reverse"),
        f"  attempt {view.attempt}   in {view.records_in:,}   out {view.records_out:,}   ",
        (f"{view.rate:,.0f} records/s", "bold green"),
        f"   lag {lag}   checkpoints completed {view.completed}",
    )
    return Group(head, _subtasks(view), _checkpoints(view), *_pauses(view), *_notes(view))


def _subtasks(view: RunView) -> Table:
    table = Table(title="subtasks", title_justify="left", expand=True, box=None, header_style="dim")
    for column in ("subtask", "pid", "in", "out", "open transaction", "pre-committed"):
        table.add_column(column)
    for index, line in sorted(view.subtasks.items()):
        table.add_row(
            str(index),
            str(line.pid or ""),
            f"{line.records_in:,}",
            f"{line.records_out:,}",
            line.open_transaction,
            ", ".join(line.pending_transactions),
        )
    return table


def _checkpoints(view: RunView) -> Table:
    table = Table(title="checkpoints", title_justify="left", expand=True, box=None, header_style="dim")
    for column in ("id", "phase", "duration", "pause of the data loop"):
        table.add_column(column)
    for _, line in sorted(view.checkpoints.items()):
        style = "red" if line.phase.startswith("aborted") else ("green" if line.phase == "committed" else "")
        table.add_row(
            f"{line.checkpoint_id}{' (final)' if line.final else ''}",
            Text(line.phase, style=style),
            "" if line.duration_ms is None else f"{line.duration_ms:.0f} ms",
            f"{line.pause_ms:.0f} ms" if line.pause_ms else "",
        )
    return table


def _pauses(view: RunView) -> list[Text]:
    p50, p99 = view.pauses.percentile(0.5), view.pauses.percentile(0.99)
    if p50 is None or p99 is None:
        return []
    said = f"pauses of the data loops   p50 {p50:.0f} ms   p99 {p99:.0f} ms   {view.pauses}"
    return [Text(said, style="dim")]


def _notes(view: RunView) -> list[Text]:
    return [
        Text.assemble((time.strftime("%H:%M:%S ", time.localtime(at_ms / 1000)), "dim"), text)
        for at_ms, text in view.notes
    ]
