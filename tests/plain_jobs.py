"""The plainest of jobs, for tests to which its graph does not matter."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.graph import GraphBuilder, JobDefinition
from twopc.operators import Step
from twopc.sink import Sink
from twopc.source import Source


def in_a_row(name: str, source: Source, steps: Sequence[Step], sink: Sink) -> JobDefinition:
    """Return the job of one source, steps one after the other, and one sink."""
    builder = GraphBuilder(name)
    last = builder.add(source)
    for step in steps:
        last = builder.add(step, (last,))
    builder.add(sink, (last,))
    return builder.definition()
