"""The job of a run: a graph that its seed draws, and what each of its sinks must hold in the end.

    in    -> map -> count    \\                                   /-> out      (every value)
    other -> map -> count-2  -> merge -> map -> (meeting)  ------->-> others   (what `is_beside`)

Beside files, `out` takes what is not for the files alone: so a checkpoint may have output of the files only.

Where both sources have as many partitions, their records meet in one state by key.

Invariants: a record says which *lane* it came from, one for each partition of each source; a sink keeps the records of
a lane in their order, whatever comes between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tests.simulation.faults import Faults
from twopc.graph import GraphBuilder, JobDefinition, Merge, Operator
from twopc.kafka.topic_partition import TopicPartition
from twopc.operators.steps import Filter, Map, Process, StatefulMap, Step
from twopc.serde import Json
from twopc.sink import Sink
from twopc.source import Source

JOB = "job"
FIRST_SINK = "out"
KAFKA_TOPICS = {FIRST_SINK: "output", "topic": "output-beside", "prefix": "output-of-prefix"}
"""The sinks that write into Kafka, and where to. The first two share a transaction; the third has one of its own."""

PREFIXES = {FIRST_SINK: JOB, "topic": JOB, "prefix": "beside"}
FILES = "files"
"""The sink that is no Kafka sink."""

INPUTS = {"in": "input", "other": "other-input"}
STATES = {"in": "count", "other": "count-2"}
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
    return len(faults.sizes) == len(faults.other_sizes)


def graph(sources: Mapping[str, Source], sinks: Mapping[str, Sink], *, meeting: bool) -> JobDefinition:
    """Return the job that reads these sources and writes to these sinks; `meeting`, their records meet in one state."""
    builder = GraphBuilder(JOB)
    counted = []
    for name, source in sources.items():
        mapped = builder.add(Map(same), (builder.add(source, (), name),))
        counted.append(builder.add(StatefulMap(count, STATES[name], Json()), (mapped,)))
    last = counted[0] if len(counted) == 1 else builder.add(Map(same), (builder.add(Merge(), tuple(counted)),))
    if meeting:
        last = builder.add(StatefulMap(meet, MEETING, Json()), (last,))
    for name, sink in sinks.items():
        takes = filter_of(name, with_files=FILES in sinks)
        builder.add(sink, (last if takes is None else builder.add(Filter(takes), (last,)),), name)
    return builder.definition()


def with_cuts(operators: Sequence[Operator], cut: Callable[[], None]) -> list[Operator]:
    """Return the operators with `cut` called before each record that comes to a step."""

    def cutting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            cut()
            return function(*arguments)

        return call

    def changed(what: Any) -> Any:
        has_function = isinstance(what, Step) and not isinstance(what, Process)
        return replace(what, function=cutting(what.function)) if has_function else what

    return [replace(each, what=changed(each.what)) for each in operators]


def same(value: str) -> str:
    return value


def filter_of(sink: str, *, with_files: bool) -> Callable[[str], bool] | None:
    """Return which values a sink takes in a job with or without files; None for all."""
    if sink != FIRST_SINK:
        return is_beside
    return is_first if with_files else None


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


def meet(state: dict[str, int] | None, value: str) -> tuple[dict[str, int], str]:
    """Count the key's records of each lane in the one state that all lanes of a number share; mark what differs."""
    lane, _, seen = value.split(":")
    counts = state or {}
    counts[lane] = counts.get(lane, 0) + 1
    return counts, value if int(seen) == counts[lane] else f"{value}:{counts[lane]}"


def expected_states(faults: Faults) -> dict[tuple[str, int, bytes], Any]:
    """Return the state of each operator, partition number and key when the input is read to its end."""
    states: dict[tuple[str, int, bytes], Any] = {}
    topics = {INPUTS[source]: state for source, state in STATES.items()}
    for lane, (partition, size) in enumerate(lanes_of(faults).items()):
        for key in range(min(KEYS, size)):
            number, count = partition.partition, len(range(key, size, KEYS))
            states[topics[partition.topic], number, b"k%d" % key] = count
            if meets(faults):
                states.setdefault((MEETING, number, b"k%d" % key), {})[f"{lane}"] = count
    return states


@cache
def expected_output(sink: str, lane: int, records: int, with_files: bool) -> Sequence[str]:
    """Return what a sink must hold of a lane with so many records."""
    seen: Counter[int] = Counter()
    output = []
    for offset in range(records):
        seen[offset % KEYS] += 1
        output.append(f"{lane}:{offset}:{seen[offset % KEYS]}")
    return tuple(filter(filter_of(sink, with_files=with_files), output))


def without(definition: JobDefinition, sink: str) -> JobDefinition:
    """Return the job with one of its sinks taken out."""
    gone = next(each for each in definition.operators if each.id == sink)
    kept = tuple(each for each in definition.operators if each.id not in (sink, *gone.inputs))
    return replace(definition, operators=kept)


def lane_of(value: str) -> int:
    return int(value.partition(":")[0])
