"""The rules of a job's graph, whatever it reads and writes: what breaks one is refused as soon as it is built."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from twopc.broadcast import refuse_broadcasts
from twopc.errors import ConfigurationError
from twopc.graph.operator import Merge, Operation, Operator, ports_taken, upstream
from twopc.operators.node import senders
from twopc.operators.step import Step
from twopc.operators.table import TableStep
from twopc.port import Port
from twopc.sink import Sink, reads_own_output
from twopc.source import Source

if TYPE_CHECKING:
    from twopc.graph.definition import JobDefinition


def refuse_what_cannot_be(job: str, operators: Sequence[Operator]) -> None:
    """Raise ConfigurationError for what is wrong with these operators, whatever is added to them."""
    refuse_duplicates(job, operators)
    refuse_scattered_keys(job, operators)
    refuse_joins_with_oneself(job, operators)
    refuse_broadcasts(job, operators)


def refuse_duplicates(job: str, operators: Sequence[Operator]) -> None:
    """Refuse two operators of one id."""
    seen: dict[str, Operator] = {}
    for operator in operators:
        if (other := seen.get(operator.id)) is not None:
            raise ConfigurationError(
                f"job {job!r} has more than one operator named {operator.id!r}, {other} and {operator}: what is stored "
                "for them would mix; give each a name of its own, with name="
            )
        seen[operator.id] = operator


def refuse_scattered_keys(job: str, operators: Sequence[Operator]) -> None:
    """State by key is kept by partition number: where records of one key come under several, it has several."""
    for keyed in operators:
        if (step := keyed.keyed_step) is None:
            continue
        before = upstream(operators, keyed.id)
        if changing := next((operator for operator in before if may_set_key(operator.operation)), None):
            raise ConfigurationError(
                f"job {job!r}: {keyed} keeps a state for each key under each partition number, and {changing} before "
                "it may change the key: records of the new key may come from any partition, and each has a state of "
                f"its own. Put {step.operator} before it, and change values with map, filter and flat_map, "
                "which keep the key; or put key_by between the two, which brings all records of one key together; or "
                "say keeps_key=True of map_records, flat_map_records, map_async_records, stateful_map_records, "
                "map_batches or process, where that leaves the key as it is"
            )


def refuse_joins_with_oneself(job: str, operators: Sequence[Operator]) -> None:
    """Of records of one source in both inputs of a join, the order of branches would say what it sees."""
    for join in operators:
        if join.keyed_step is None:
            continue
        sides = [senders(operators, Port.parse(port).operator) for port in join.inputs]
        both: set[str] = set().union(*(one & other for one, other in combinations(sides, 2)))
        shared = next(
            (operator.id for operator in operators if isinstance(operator.operation, Source) and operator.id in both),
            "",
        )
        if shared:
            raise ConfigurationError(
                f"job {job!r}: {join} joins records of {shared!r} with the same records, and nothing says whether a "
                "record comes before itself: keep what came before by key, with process or stateful_map, or bring both "
                "sides through key_by first, each of which has a topic, and an order, of its own"
            )


def may_set_key(operation: Operation) -> bool:
    """Whether a record may have another key behind this operator: unless a step says that it keeps it."""
    return not (isinstance(operation, Source | Merge | Sink) or operation.keeps_key)


def refuse_loose_ends(job: JobDefinition) -> None:
    """Refuse a job that lacks an end, or in which something leads nowhere."""
    if not job.sources:
        raise ConfigurationError(f"job {job.name!r} has no source: begin with job.source(KafkaSource('topic'))")
    if not job.sinks:
        raise ConfigurationError(f"job {job.name!r} has no sink: end the chain with .sink(KafkaSink('topic'))")
    dead_letters = job.dead_letters
    for operator in job.operators:
        if isinstance(operator.operation, Sink) and not operator.inputs and operator.id not in dead_letters:
            raise ConfigurationError(f"job {job.name!r}: nothing comes to {operator.id}, {operator}: leave it out")
    if missing := sorted(dead_letters.keys() - job.sinks.keys()):
        raise ConfigurationError(
            f"job {job.name!r} has no sink {missing[0]!r} for the dead letters of {dead_letters[missing[0]][0]!r}"
        )
    taken = ports_taken(job.operators)
    refuse_untaken_outputs(job, taken)
    used = {port.operator for port in taken}
    for operator in job.operators:
        if operator.id not in used and isinstance(operator.operation, TableStep):
            raise ConfigurationError(
                f"job {job.name!r}: no stream looks into {operator.id}, {operator}: join one with it, or leave it out"
            )
        if operator.id not in used and operator.id not in job.sinks:
            raise ConfigurationError(
                f"job {job.name!r}: what comes out of {operator.id}, {operator}, goes nowhere: end it with "
                ".sink(KafkaSink('topic')), or leave it out"
            )


def refuse_untaken_outputs(job: JobDefinition, taken: Container[Port]) -> None:
    """Refuse a side output that no stream takes: its records would be lost without a word."""
    for operator in job.operators:
        if not isinstance(operator.operation, Step):
            continue
        for name in operator.operation.outputs:
            if Port(operator.id, name) not in taken:
                raise ConfigurationError(
                    f"job {job.name!r}: no stream takes the side output {name!r} of {operator.id}, {operator}: end "
                    f"side_output({name!r}) with .sink(KafkaSink('topic')), or take it out of the outputs of its class"
                )


def refuse_own_output(job: JobDefinition) -> None:
    """Refuse a job that reads what it writes, dead letters too, where that is not what `key_by` does."""
    for operator in job.operators:
        if not isinstance(operator.operation, Source):
            continue
        for key, sink in job.sinks.items():
            if operator.behind != key and (output := sink.read_by(operator.operation)) is not None:
                raise ConfigurationError(reads_own_output(job.name, operator.id, output))
