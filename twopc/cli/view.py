"""The live view of a run on a terminal, and its plain-text twin for everything else."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from twopc import events
from twopc.cli.view_state import RunView
from twopc.logs import LineStream
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.protocol.record_errors import texts_of

LINE_SECONDS = 2.0
_WRONG = events.AttemptFenced | events.CheckpointAborted | events.RecordFailed


class EventSink(Protocol):
    """Something that is shown a run's events."""

    def note(self, event: events.Event) -> None: ...


@contextmanager
def live_view(job: str) -> Iterator[EventSink]:
    """Show the run on a terminal, until the context ends; what is printed meanwhile stands above it."""
    screen, console = _Screen(RunView(job)), Console(file=sys.stderr)
    drawn = Live(
        get_renderable=screen.render,
        console=console,
        refresh_per_second=4,
        transient=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    # Whole, however long: a line that the terminal breaks is copied as one.
    above = LineStream(lambda line: console.print(Text.from_ansi(line), soft_wrap=True))
    with drawn, closing(above), redirect_stdout(above), redirect_stderr(above):
        yield screen


class _Screen:
    """Folds events in on one thread while another draws."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._lock = threading.Lock()

    def note(self, event: events.Event) -> None:
        with self._lock:
            self._view.note(event)

    def render(self) -> RenderableType:
        with self._lock:
            return render(self._view)


class PlainLines:
    """Log records in the job's name: what is worth one at once, the progress every two seconds."""

    def __init__(self, job: str) -> None:
        self._view = RunView(job)
        self._log = logging.getLogger(f"twopc.job.{job}")
        self._last_line = -LINE_SECONDS

    def note(self, event: events.Event) -> None:
        for noted, note in self._view.note(event):
            self._write(note, noted)
        if isinstance(event, events.CheckpointAborted):
            what = f"checkpoint {event.checkpoint_id}" if event.checkpoint_id else f"requested {event.kind}"
            self._write(f"{what} aborted: {event.message}", event)
        elif isinstance(event, events.CheckpointCompleted) and time.monotonic() - self._last_line >= LINE_SECONDS:
            line = f"checkpoint {event.checkpoint_id} completed in {event.duration_ms:.0f} ms"
            # The first may be there before a subtask has told a figure: then the next one tells them.
            if self._view.has_figures:
                self._last_line = time.monotonic()
                line = f"{line}; {_figures(self._view)}"
            self._write(line, event)

    def _write(self, text: str, event: events.Event) -> None:
        level = logging.WARNING if isinstance(event, _WRONG) else logging.INFO
        checkpoint = getattr(event, "checkpoint_id", NO_CHECKPOINT)
        facts = {"event": event.name, "job": event.job, "attempt": event.attempt, "checkpoint": checkpoint}
        self._log.log(level, text, extra={"fields": {name: value for name, value in facts.items() if value}})


def _figures(view: RunView) -> str:
    lag = "unknown" if view.lag is None else f"{view.lag:,}"
    counts = "".join(f", {text}" for text in texts_of(view.record_errors))
    return f"{view.records_in:,} in, {view.records_out:,} out, {view.rate:,.0f}/s, lag {lag}{counts}"


def render(view: RunView) -> RenderableType:
    """Draw the whole view."""
    lag = "unknown" if view.lag is None else f"{view.lag:,}"
    head = Text.assemble(
        (f" {view.job} ", "bold reverse"),
        f"  attempt {view.attempt}   in {view.records_in:,}   out {view.records_out:,}   ",
        (f"{view.rate:,.0f} records/s", "bold green"),
        f"   lag {lag}   checkpoints completed {view.completed}",
        *((f"   {text}", "bold yellow") for text in texts_of(view.record_errors)),
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
    line = f"pauses of the data loops   p50 {p50:.0f} ms   p99 {p99:.0f} ms   {view.pauses}"
    return [Text(line, style="dim")]


def _notes(view: RunView) -> list[Text]:
    return [
        Text.assemble((time.strftime("%H:%M:%S ", time.localtime(at_ms / 1000)), "dim"), text)
        for at_ms, text in view.notes
    ]
