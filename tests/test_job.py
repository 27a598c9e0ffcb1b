from __future__ import annotations

import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import twopc
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.job import Job
from twopc.kafka.input.startup_modes import StartingOffsets
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.operators import (
    Filter,
    FlatMap,
    Map,
    StatefulMap,
)
from twopc.protocol.facts import Committable, SplitPosition
from twopc.record import Batch, Record
from twopc.serde import Json, String
from twopc.sink import PreCommit, Settled
from twopc.source import Source, SourcePlanner, SourceReader, Split
from twopc.stream import Stream
from twopc.two_phase import TwoPhaseCommitSink


class Nowhere(TwoPhaseCommitSink[None]):
    def begin(self) -> None: ...
    def write(self, txn: None, batch: Batch) -> int:
        raise NotImplementedError

    def pre_commit(self, txn: None, request: PreCommit) -> Committable | None: ...
    def commit(self, committable: Committable, proof: Any) -> None: ...
    def abort(self, txn: None) -> None: ...
    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        raise NotImplementedError

    def describe(self) -> Mapping[str, Any]:
        return {"type": "Nowhere", "topic": "out"}


class Nothing(Source, SourcePlanner):
    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        raise NotImplementedError

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        raise NotImplementedError


def count(total: int | None, value: bytes) -> tuple[int, bytes]:
    return (total or 0) + 1, value


def replaced(record: Record) -> Record:
    return record


def split(record: Record) -> list[Record]:
    return [record]


def batches(batch: Any) -> Any:
    return batch


def stream() -> Stream:
    return Job("words").source(Nothing())


def test_a_job_is_its_name_source_steps_and_sink_in_order() -> None:
    source, sink = Nothing(), Nowhere()
    job = Job("words")
    assert job.source(source).flat_map(bytes.split).filter(len).stateful_map(count, name="count").sink(sink) is job
    definition = job.definition()
    first, *steps, last = (each.operation for each in definition.operators)
    assert (definition.name, first, last) == ("words", source, sink)
    assert steps[:2] == [FlatMap(bytes.split), Filter(len)]
    assert isinstance(steps[2], StatefulMap)
    assert isinstance(steps[2].state, Json)


def test_the_description_has_a_line_for_every_part() -> None:
    job = stream().map(bytes.upper).stateful_map(count, name="count", state=String()).sink(Nowhere())
    assert job.describe().splitlines() == [
        "job words",
        "  source-1  Nothing()",
        "  map-1     map(bytes.upper)",
        "  count     stateful_map(count, name='count')",
        "  sink-1    Nowhere(topic=out)",
    ]


def test_a_job_without_operators_is_complete() -> None:
    assert stream().sink(Nowhere()).definition().steps == {}


def two_states() -> None:
    stream().stateful_map(count, name="n").map_records(replaced).stateful_map(count, name="m").sink(Nowhere())


def dropped_operator() -> None:
    start = stream()
    start.map(len)
    start.sink(Nowhere()).definition()


def no_sink() -> None:
    job = Job("words")
    job.source(Nothing()).map(len)
    job.definition()


WRONG: Any = "wrong"
CLASS: Any = Json


async def coroutine(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Job("../words"), "job name '../words' can't be used"),
        (lambda: Job("words").definition(), "'words' has no source: begin with job.source"),
        (no_sink, r"'words' has no sink: end the chain with .sink\("),
        (dropped_operator, r"what comes out of map-1, map\(len\), goes nowhere: end it with .sink"),
        (lambda: Job("words").source(WRONG), "'wrong' is not a source such as KafkaSource"),
        (lambda: stream().sink(WRONG), "'wrong' is not a sink such as KafkaSink"),
        (lambda: stream().map(WRONG), "map needs a function, not str"),
        (lambda: stream().flat_map_records(WRONG), "flat_map_records needs a function, not str"),
        (lambda: stream().map(coroutine), r"map\(coroutine\) can't run a coroutine function"),
        (lambda: stream().stateful_map(count, name="a b"), "the name of a stateful_map 'a b' can't be used"),
        (lambda: stream().stateful_map(count, name="n", state=CLASS), "must be a serde such as Json"),
        (
            lambda: stream().stateful_map(count, name="n").map(len).stateful_map(count, name="n").sink(Nowhere()),
            "more than one operator named 'n'",
        ),
        (
            lambda: stream().map_records(replaced).stateful_map(count, name="n").sink(Nowhere()),
            r"stateful_map\(count, name='n'\) keeps .*map_records\(replaced\) before it may change.*put key_by between",
        ),
        (
            lambda: stream().flat_map_records(split).map(len).stateful_map(count, name="n").sink(Nowhere()),
            r"flat_map_records\(split\) before it may change the key",
        ),
        (
            lambda: stream().map_batches(batches).filter(len).stateful_map(count, name="n").sink(Nowhere()),
            r"map_batches\(batches\) before it may change the key",
        ),
        (
            two_states,
            r"stateful_map\(count, name='m'\) keeps .*map_records\(replaced\) before it",
        ),
    ],
)
def test_what_can_not_be_a_job_is_refused_when_it_is_built(build: Callable[[], Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        build()


def test_steps_are_values() -> None:
    assert Map(bytes.upper) == Map(bytes.upper)
    with pytest.raises(AttributeError):
        Map(bytes.upper).function = bytes.lower  # type: ignore[misc]


def test_every_public_name_is_there() -> None:
    assert {name for name in twopc.__all__ if getattr(twopc, name).__name__ != name} == set()


def test_the_error_that_ends_a_run_shows_one_line_of_the_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TWOPC_BOOTSTRAP_SERVERS", raising=False)
    job = Job("nowhere")
    job.source(KafkaSource("in")).sink(KafkaSink("out"))
    with pytest.raises(ConfigurationError, match="no Kafka brokers are named") as raised:
        job.run(host="inline", checkpoint_dir=str(tmp_path))
    shown = "".join(traceback.format_exception(raised.value))
    assert (shown.count("  File "), shown.count("Traceback")) == (2, 1), shown


def test_importing_what_a_job_needs_starts_no_spark() -> None:
    code = "import sys; from twopc import Job, KafkaSource, KafkaSink; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_library_warns_in_the_tests_of_whoever_imports_all_of_it() -> None:
    code = "import twopc, twopc.testing, twopc.cli.run; [getattr(twopc, name) for name in twopc.__all__]"
    assert subprocess.run([sys.executable, "-W", "error", "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: KafkaSource("in", value=cast(Any, "json")), "value of KafkaSource must be a serde"),
        (lambda: KafkaSource("in", key=cast(Any, Json)), "key of KafkaSource must be a serde such as Json()"),
        (lambda: KafkaSink("out", value=cast(Any, Json)), "value of KafkaSink must be a serde"),
        (lambda: KafkaSource("in", start=cast(Any, "earliest")), "such as StartingOffsets.earliest()"),
        (lambda: StartingOffsets.timestamp(cast(Any, "now")), "Unix milliseconds, not 'now'"),
        (lambda: StartingOffsets.specific(cast(Any, {"in": 3})), "not ('in', 3)"),
        (lambda: Job(cast(Any, 3)), "job name 3 can't be used"),
    ],
)
def test_what_is_of_another_type_is_refused_where_it_is_written(build: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        build()


def test_what_keeps_the_key_may_come_before_state_and_anything_after_it() -> None:
    keeping = stream().map(len).filter(len).flat_map(list).filter_records(bool).stateful_map(count, name="n")
    assert keeping.map_records(replaced).map_batches(batches).sink(Nowhere()).definition().state_serdes.keys() == {
        ("n", "n")
    }
    assert Job("words").source(KafkaSource(["a", "b"])).map_records(replaced).sink(Nowhere())


def test_several_topics_may_meet_where_a_state_is_kept() -> None:
    job = Job("words")
    web, app = job.source(KafkaSource(["a", "b"]), name="web"), job.source(KafkaSource("c"), name="app")
    job.source(KafkaSource("d"), name="beside").map(len).sink(Nowhere())
    web.merge(app.filter(len)).stateful_map(count, name="all").sink(Nowhere())
    web.stateful_map(count, name="some").sink(Nowhere())
    definition = job.definition()
    assert {key: set(sources) for key, sources in definition.keyed_inputs.items()} == {
        "all": {"web", "app"},
        "some": {"web"},
    }
    assert definition.keyed_sources == {"web", "app"}


def test_an_operator_has_the_name_that_it_was_given_or_its_kind_and_number() -> None:
    job = Job("words")
    named = job.source(Nothing(), name="web").map(len).map(str, name="text").filter(bool)
    named.map(len).sink(Nowhere())
    job.source(Nothing()).sink(Nowhere(), name="archive")
    ids = [each.id for each in job.definition().operators]
    assert ids == ["web", "map-1", "text", "filter-1", "map-3", "sink-1", "source-2", "archive"]


def test_streams_branch_and_merge_into_several_sinks() -> None:
    job = Job("words")
    web, app = job.source(Nothing(), name="web"), job.source(Nothing(), name="app")
    both = web.map(len).merge(app, name="both")
    both.filter(bool).sink(Nowhere(), name="some")
    both.sink(Nowhere(), name="all")
    definition = job.definition()
    assert {each.id: each.inputs for each in definition.operators} == {
        "web": (),
        "app": (),
        "map-1": ("web",),
        "both": ("map-1", "app"),
        "filter-1": ("both",),
        "some": ("filter-1",),
        "all": ("both",),
    }
    assert (list(definition.sources), list(definition.sinks)) == (["web", "app"], ["some", "all"])
    assert job.describe().splitlines() == [
        "job words",
        "  web       Nothing()",
        "  app       Nothing()",
        "  map-1     map(len)  <- web",
        "  both      merge  <- map-1, app",
        "  filter-1  filter(bool)",
        "  some      Nowhere(topic=out)",
        "  all       Nowhere(topic=out)  <- both",
    ]


def merged_with_nothing() -> None:
    stream().merge()


def merged_over_jobs() -> None:
    stream().merge(stream())


def state_behind_a_merge() -> None:
    job = Job("words")
    start = job.source(Nothing())
    start.map_records(replaced).merge(start).stateful_map(count, name="n")


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: stream().map(len, name="n").sink(Nowhere(), name="n"), "more than one operator named 'n'"),
        (lambda: stream().map(len, name="map-2").map(len), "more than one operator named 'map-2'"),
        (lambda: stream().map(len, name="a/b"), "the name of a map 'a/b' can't be used"),
        (merged_with_nothing, "merge needs another stream"),
        (merged_over_jobs, "is not a stream of this job"),
        (state_behind_a_merge, r"map_records\(replaced\) before it may change the key"),
    ],
)
def test_what_can_not_be_part_of_a_graph_is_refused_where_it_is_written(
    build: Callable[[], Any], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        build()


def test_what_an_operator_does_can_be_replaced_in_its_place() -> None:
    definition = stream().map(len).sink(Nowhere()).definition()
    other = definition.replaced({"map-1": Map(str)}, name="other")
    assert (other.name, other.steps, list(other.sinks)) == ("other", {"map-1": Map(str)}, ["sink-1"])


def test_a_job_is_drawn_with_an_arrow_for_each_stream_and_quotes_that_mean_nothing() -> None:
    job = Job("drawn")
    web, app = job.source(Nothing()), job.source(Nothing())
    web.merge(app, name="both").print('a "b" <c> #d').sink(Nowhere(), name="all")
    drawn = job.definition().mermaid().splitlines()
    assert drawn[0] == "flowchart TD"
    assert drawn[1].startswith('  n0(["source-1<br>')
    assert drawn[4] == "  n3[\"print-1<br>print('a #quot;b#quot; #lt;c#gt; #35;d')\"]"
    assert drawn[6:] == ["  n0 --> n2", "  n1 --> n2", "  n2 --> n3", "  n3 --> n4"]
