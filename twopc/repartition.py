"""The way of a stream through a place of the job's own, where all records of one key come under one partition number.

`key_by` is three operators: a step that sets the key, NAME, a sink that writes the records to that place, NAME-sink,
and a source that reads them there, NAME-source. To everything else in the job they are what all steps, sinks and
sources are; only that the source reads what the job itself writes (`Operator.behind`) is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from twopc.error_policy import ErrorPolicy
from twopc.errors import ConfigurationError
from twopc.graph import GraphBuilder, Operation, Operator, upstream
from twopc.operators import KeyBy, KeyByRecords
from twopc.operators.step import Step
from twopc.port import Port
from twopc.serde import Serde, checked_serde
from twopc.sink import Sink
from twopc.source import Source

OWN_SUFFIX = "-repartition"
"""How the names of these places end."""


def own_name(job: str, operator: str) -> str:
    """Return the name of the place that a key_by has."""
    return f"{job}-{operator}{OWN_SUFFIX}"


@dataclass(frozen=True, slots=True)
class Repartition:
    """The description of the place: its name, the serdes of what is written there, and how many partitions it has.

    None is for what its maker chooses, by the `sources` from which records come; `unchanged` says that their values do
    as they were read.
    """

    name: str
    key: Serde | None = None
    value: Serde | None = None
    partitions: int | None = None
    sources: tuple[Source, ...] = ()
    unchanged: bool = False

    def __post_init__(self) -> None:
        for what, serde in (("key", self.key), ("value", self.value)):
            if serde is not None:
                checked_serde(f"{what} of key_by", serde)
        if self.partitions is not None and (type(self.partitions) is not int or self.partitions < 1):
            raise ConfigurationError(f"partitions of key_by must be a whole number from 1 on, not {self.partitions!r}")


class RepartitionConnectors(NamedTuple):
    """The two ends of the place."""

    sink: Sink
    source: Source


def add_key_by(
    builder: GraphBuilder, at: str, step: KeyBy | KeyByRecords, name: str, through: Repartition, otherwise: ErrorPolicy
) -> str:
    """Add the operators of a key_by behind a port; return the id of the last.

    What goes wrong behind it is the affair of the sources before it: of their policy, or of `otherwise` if they have
    several.
    """
    before = _before(builder.operators, at)
    sources = [operator for operator in before if isinstance(operator.operation, Source)]
    ends = _ends(builder.name, name, before, through)
    keyed = builder.add(step, (at,), name)
    written = builder.append(Operator(f"{name}-sink", (keyed,), ends.sink))
    policy = sources[0].on_error if all(source.on_error == sources[0].on_error for source in sources) else otherwise
    return builder.append(Operator(f"{name}-source", (), ends.source, policy, behind=written))


def _before(operators: Sequence[Operator], at: str) -> list[Operator]:
    """Return all operators that a record may have come through to this port, in the order of the job."""
    last = Port.parse(at).operator
    return [*reversed(list(upstream(operators, last))), *(operator for operator in operators if operator.id == last)]


def _keeps_values(operation: Operation) -> bool:
    return not isinstance(operation, Step) or operation.keeps_values


def _ends(job: str, name: str, before: Sequence[Operator], through: Repartition) -> RepartitionConnectors:
    sources = tuple(operator.operation for operator in before if isinstance(operator.operation, Source))
    unchanged = all(_keeps_values(operator.operation) for operator in before)
    wanted = replace(through, sources=sources, unchanged=unchanged)
    for source in sources:
        if (ends := source.repartitioned(wanted)) is not None:
            return ends
    raise ConfigurationError(
        f"job {job!r}: key_by {name!r} writes to a topic of the job's own, on the cluster of a KafkaSource before it, "
        "and there is none: read the records from Kafka, or write them there with their new keys by a job before this"
    )
