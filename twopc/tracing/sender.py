"""Sends the traces of a process's jobs, while their events come in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from twopc import events
from twopc.tracing.checkpoints import CheckpointTraces
from twopc.tracing.otlp import TraceExporter


@contextmanager
def traces_sent() -> Iterator[Callable[[events.Event], None]]:
    """Send one trace a checkpoint; give what has to be told of every event, by one thread.

    Raises ConfigurationError where they can't be sent from here.
    """
    traces, exporter = CheckpointTraces(), TraceExporter()
    try:
        yield lambda event: exporter.send(traces.note(event))
    finally:
        exporter.send(traces.end(round(time.time() * 1000)))
        exporter.close()
