"""The job of a run: a graph that its seed draws, and what each of its sinks must hold in the end.

    in    -> map -> count    \\                                   /-> out      (every value)
    other -> map -> count-2  -> merge -> map -> (meeting)  ------->-> others   (what `is_beside`)

Beside files, `out` takes what is not for the files alone: so a checkpoint may have output of the files only.

Where both sources have as many partitions, their records meet in one state by key. Where the second one gets another
partition while the job runs, its records are numbered without a state (`numbered`): keys would be elsewhere then.

With a sink of dead letters it is another job, of one source: `tests.simulation.bad_records`. With `own` among the sinks
it is one that reads what it has itself written, as behind a key_by, where another subtask may read than wrote:

    in -> map -> own ... own-source -> count -> out

Where event time passes it is `tests.simulation.timed_job`.

Invariants: a record says which *lane* it came from, one for each partition of each source; a sink keeps the records of
a lane in their order, whatever comes between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

from tests.simulation import bad_records
from tests.simulation.async_client import Client
from tests.simulation.bad_records import ALARMS, DEAD, Alarms, IntoDead, counted, mapped, timestamp
from tests.simulation.faults import Faults
from tests.simulation.joins import JoinJob, add_joins, joined_of
from tests.simulation.joins_model import expected_states as expected_joins
from twopc.graph import GraphBuilder, JobDefinition, Merge, Operator
from twopc.kafka.topic_partition import TopicPartition
from twopc.operators import (
    AssignTimestamps,
    Filter,
    JoinBroadcast,
    JoinTable,
    Map,
    MapAsync,
    Process,
    StatefulMap,
)
from twopc.operators.as_of_join import JoinAsOf
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.table_join import JoinTables
from twopc.operators.window_step import Reduce, WindowAggregate
from twopc.serde import Json
from twopc.sink import Sink
from twopc.source import Source

JOB = "job"
FIRST_SINK = "out"
OWN, OWN_SOURCE = "own", "own-source"
"""The sink whose topic the job itself reads, and the source that does."""

KAFKA_TOPICS = {
    FIRST_SINK: "output",
    "topic": "output-beside",
    "prefix": "output-of-prefix",
    DEAD: "dead-letters",
    OWN: "own-topic",
}
"""The sinks that write into Kafka, and where to. All share a transaction but the third, which has one of its own."""

PREFIXES = {FIRST_SINK: JOB, "topic": JOB, "prefix": "beside", DEAD: JOB, OWN: JOB}
FILES = "files"
"""The sink that is no Kafka sink."""

INPUTS = {"in": "input", "other": "other-input"}
STATES = {"in": "count", "other": "count-2"}
GROWING = "other"
"""The source whose input may get another partition while the job runs."""

MEETING = "meeting"
KEYS = 3


def sizes_of(faults: Faults) -> dict[str, tuple[int, ...]]:
    """How many records each partition of each source has, by the source's operator id."""
    sizes = dict(zip(INPUTS, (faults.sizes, faults.other_sizes), strict=True))
    return {source: each for source, each in sizes.items() if each}


def lanes_of(faults: Faults) -> dict[TopicPartition, int]:
    """Return the partitions of all sources, and how many records each has; a lane is its place in here."""
    return {
        TopicPartition(INPUTS[source], number): size
        for source, sizes in sizes_of(faults).items()
        for number, size in enumerate(sizes)
    }


def topics_of(faults: Faults) -> list[str]:
    """The topics that the sinks write to."""
    return [KAFKA_TOPICS[sink] for sink in faults.sinks if sink in KAFKA_TOPICS]


def meets(faults: Faults) -> bool:
    """Whether the records of two sources meet in one state by key."""
    return len(faults.sizes) == len(faults.other_sizes) and not faults.input_grows_ms


def graph(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink], *, meeting: bool, quiet: tuple[int, ...] = ()
) -> JobDefinition:
    """Return the job that reads these sources and writes to these sinks; `meeting`, their records meet in one state.

    A source that looks for new splits is not before state by key. No sink takes what comes from the `quiet` offsets.
    """
    if DEAD in sinks:
        return bad_records_graph(sources["in"], sinks)
    if OWN in sinks:
        return own_topic_graph(sources, sinks)
    builder = GraphBuilder(JOB)
    counted = []
    for name, source in sources.items():
        mapped = builder.add(Map(same), (builder.add(source, (), name),))
        counting = StatefulMap(count, STATES[name], Json()) if source.watch_ms is None else Map(numbered)
        counted.append(builder.add(counting, (mapped,)))
    last = counted[0] if len(counted) == 1 else builder.add(Map(same), (builder.add(Merge(), tuple(counted)),))
    if meeting:
        last = builder.add(StatefulMap(meet, MEETING, Json()), (last,))
    _end(builder, last, sinks, quiet)
    return builder.definition()


def bad_records_graph(source: Source, sinks: Mapping[str, Sink]) -> JobDefinition:
    """Return the job of `tests.simulation.bad_records`."""
    builder = GraphBuilder(JOB)
    last = builder.add(source, (), "in", IntoDead(sinks[DEAD]))
    for step in (AssignTimestamps(timestamp), Map(mapped), StatefulMap(counted, STATES["in"], Json())):
        last = builder.add(step, (last,))
    last = builder.add(Process(Alarms(), ALARMS), (last,))
    _end(builder, last, {name: sink for name, sink in sinks.items() if name != DEAD})
    return builder.definition()


def joined_graph(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink], joined: JoinJob, sizes: Sequence[int]
) -> JobDefinition:
    """Return the job of `tests.simulation.joins`."""
    builder = GraphBuilder(JOB)
    last = add_joins(builder, sources, sinks, joined, sizes)
    _end(builder, last, {name: sink for name, sink in sinks.items() if name != DEAD})
    return builder.definition()


def own_topic_graph(sources: Mapping[str, Source], sinks: Mapping[str, Sink]) -> JobDefinition:
    """Return the job that reads what it has itself written."""
    builder = GraphBuilder(JOB)
    mapped = builder.add(Map(same), (builder.add(sources["in"], (), "in"),))
    written = builder.add(sinks[OWN], (mapped,), OWN)
    read = builder.append(Operator(OWN_SOURCE, (), sources[OWN_SOURCE], behind=written))
    builder.add(sinks[FIRST_SINK], (builder.add(StatefulMap(count, STATES["in"], Json()), (read,)),), FIRST_SINK)
    return builder.definition()


def _end(builder: GraphBuilder, last: str, sinks: Mapping[str, Sink], quiet: tuple[int, ...] = ()) -> None:
    for name, sink in sinks.items():
        takes = filter_of(name, with_files=FILES in sinks, quiet=quiet)
        builder.add(sink, (last if takes is None else builder.add(Filter(takes), (last,)),), name)


def with_cuts(operators: Sequence[Operator], cut: Callable[[], None]) -> list[Operator]:
    """Return the operators with `cut` called before each record that comes to a step."""

    def cutting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            cut()
            return function(*arguments)

        return call

    def changed(what: Any) -> Any:
        match what:
            case JoinTables() | JoinAsOf():
                join: Any = copy(what.processor)
                join.function = cutting(join.function)
                return replace(what, processor=join)
            case Process():
                kind: Any = type(what.processor)
                return replace(what, processor=kind(cut))
            case WindowAggregate(aggregation=Reduce(function)):
                return replace(what, aggregation=Reduce(cutting(function)))
            case MapAsync():
                return replace(what, function=Client(cut))
            case StatefulMap() | Map() | Filter() | JoinTable() | JoinBroadcast() | JoinStreams():
                return replace(what, function=cutting(what.function))
            case _:
                return what

    return [replace(each, operation=changed(each.operation)) for each in operators]


def same(value: str) -> str:
    return value


def filter_of(sink: str, *, with_files: bool, quiet: tuple[int, ...] = ()) -> Callable[[str], bool] | None:
    """Return which values a sink takes in a job with or without files; None for all."""
    takes = is_beside if sink != FIRST_SINK else is_first if with_files else None
    if not quiet:
        return takes
    return lambda value: offset_of(value) not in quiet and (takes is None or takes(value))


def is_beside(value: str) -> bool:
    """Whether a value goes to the sinks beside the first one, too."""
    return not value.endswith(":2")


def is_first(value: str) -> bool:
    """Whether a value goes to the first sink, where there are files beside it."""
    return not value.endswith(":1")


def count(state: int | None, value: str) -> tuple[int, str]:
    """The job: number the records of each key, so that the output shows every slip of the state."""
    seen = (state or 0) + 1
    return seen, f"{value}:{seen}"


def numbered(value: str) -> str:
    """What `count` makes of a value where the records of a key come in the order of their offsets."""
    return f"{value}:{int(value.split(':')[1]) // KEYS + 1}"


def meet(state: dict[str, int] | None, value: str) -> tuple[dict[str, int], str]:
    """Count the key's records of each lane in the one state that all lanes of a number share; mark what differs."""
    lane, _, seen = value.split(":")
    counts = state or {}
    counts[lane] = counts.get(lane, 0) + 1
    return counts, value if int(seen) == counts[lane] else f"{value}:{counts[lane]}"


def expected_states(faults: Faults) -> dict[tuple[str, int, bytes], Any]:
    """Return the state of each operator, partition number and key when the input is read to its end."""
    states: dict[tuple[str, int, bytes], Any] = {}
    if (joined := joined_of(faults)) is not None:
        return expected_joins(faults.sizes, faults.other_sizes, joined, KEYS)
    if DEAD in faults.sinks:
        for number, size in enumerate(faults.sizes):
            states |= {(state, number, key): held for (state, key), held in bad_records.states(size, KEYS).items()}
        return states
    topics = {INPUTS[source]: state for source, state in STATES.items()}
    shift = 1 if OWN in faults.sinks else 0
    for lane, (partition, size) in enumerate(lanes_of(faults).items()):
        if faults.input_grows_ms and partition.topic == INPUTS[GROWING]:
            continue
        for key in range(min(KEYS, size)):
            number = (partition.partition + shift) % len(faults.sizes) if shift else partition.partition
            count = len(range(key, size, KEYS))
            states[topics[partition.topic], number, b"k%d" % key] = count
            if meets(faults):
                states.setdefault((MEETING, number, b"k%d" % key), {})[f"{lane}"] = count
    return states


def expected_output(faults: Faults, sink: str, lane: int, records: int) -> Sequence[str]:
    """Return what a sink must hold of a lane with so many records."""
    with_files = FILES in faults.sinks
    if sink == OWN:
        return tuple(f"{lane}:{offset}" for offset in range(records))
    if DEAD not in faults.sinks:
        return _expected_output(sink, lane, records, with_files, faults.quiet if OWN not in faults.sinks else ())
    output, dead = bad_records.everything(lane, records, KEYS)
    return dead if sink == DEAD else tuple(filter(filter_of(sink, with_files=with_files), output))


@cache
def _expected_output(sink: str, lane: int, records: int, with_files: bool, quiet: tuple[int, ...]) -> Sequence[str]:
    seen: Counter[int] = Counter()
    output = []
    for offset in range(records):
        seen[offset % KEYS] += 1
        output.append(f"{lane}:{offset}:{seen[offset % KEYS]}")
    return tuple(filter(filter_of(sink, with_files=with_files, quiet=quiet), output))


def without(definition: JobDefinition, sink: str) -> JobDefinition:
    """Return the job with one of its sinks taken out."""
    gone = next(each for each in definition.operators if each.id == sink)
    kept = tuple(each for each in definition.operators if each.id not in (sink, *gone.inputs))
    return replace(definition, operators=kept)


def offset_of(value: str) -> int:
    return int(value.split(":")[1])


def lane_of(value: str) -> int:
    return int(value.partition(":")[0])
