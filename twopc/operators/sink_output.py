"""What comes out of a job's graph on a subtask, and what is done about a record that goes wrong on its way there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from twopc.record import Batch, RecordError


@dataclass(frozen=True, slots=True)
class SinkOutput:
    """The records that come out of the graph at one sink."""

    sink: str
    batch: Batch


OnError = Callable[[str, RecordError], Iterable[SinkOutput]]
"""Returns what is written instead of a record of a source that went wrong. Raises what ends the attempt."""


def fail(source: str, error: RecordError) -> Iterable[SinkOutput]:
    """End the attempt at the first record that goes wrong."""
    raise error.named()
