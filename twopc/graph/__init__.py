"""A job as data: a graph of named operators, sources and sinks among them.

Invariants of a `JobDefinition`:

- Operators stand in topological order: every input of an operator stands before it.
- An operator's id is its name in the job, and no two have one; whatever is stored belongs to an id.
- Every path begins at a source and ends at a sink.
- A sink without inputs takes dead letters: the records that go wrong of the sources whose policy names it.
- What comes to a broadcast table is read for it alone, by every subtask: its source is none of `sources`.
- Where an operator keeps state by key, no operator before it may change the key. That the inputs which meet there have
  the same number of partitions, the driver sees to when it plans (`twopc.partition_groups`).
"""

from twopc.graph.builder import GraphBuilder
from twopc.graph.definition import JobDefinition, JobOrigin
from twopc.graph.operator import FAIL, Merge, Operation, Operator, upstream

__all__ = ["FAIL", "GraphBuilder", "JobDefinition", "JobOrigin", "Merge", "Operation", "Operator", "upstream"]
