"""An operator is one file: this one has two input ports and a state by key, and no other module knows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import isabstract
from typing import Any

import pytest

from twopc import ConfigurationError, Job, Json, KafkaSink, KafkaSource, Serde, Stream
from twopc.column import Over
from twopc.operators import Step
from twopc.operators.instance import Instance, OperatorContext
from twopc.operators.keyed import KeyForms, partition_runs
from twopc.operators.result import Result, Work
from twopc.operators.step import RECORDS, InputPort
from twopc.operators.write_back_cache import WriteBackCache
from twopc.record import Batch
from twopc.testing import MemoryRun


@dataclass(frozen=True, slots=True)
class Gate(Step):
    """record, and whether the gate of its key was opened last -> the records that find it open"""

    name: str
    operator = "gate"
    ports = (RECORDS, InputPort("switch"))
    keeps_key = by_key = True

    @property
    def states(self) -> Mapping[str, Serde]:
        return {self.name: Json()}

    @property
    def state_name(self) -> str:
        return self.name

    def open(self, context: OperatorContext) -> Instance:
        return GateOperator(self, context.cache(self.name))

    def __str__(self) -> str:
        return f"gate(name={self.name!r})"


class GateOperator(Instance):
    """One gate on one subtask."""

    def __init__(self, step: Gate, states: WriteBackCache) -> None:
        self._key_forms = KeyForms(step)
        self._states = states

    @property
    def ports(self) -> Sequence[Work]:
        return (self._records, self._switch)

    def write_back(self) -> None:
        self._states.write_back()

    def _records(self, batch: Batch, _over: Over) -> Result:
        keys, bad_key = self._key_forms.of(batch)
        found: list[Any] = []
        for number, run in partition_runs(batch.rows, keys):
            self._states.fetch(number, run)
            found += map(self._states.of(number)[0].get, run)
        self._states.settle()
        return Result(len(keys), batch.take([index for index, gate in enumerate(found) if gate == b"true"]), bad_key)

    def _switch(self, batch: Batch, _over: Over) -> Result:
        keys, bad_key = self._key_forms.of(batch)
        gates = iter(Json().serialize_all(batch.values))
        for number, run in partition_runs(batch.rows[: len(keys)], keys):
            self._states.put(number, run, [next(gates) for _ in run])
        self._states.settle()
        return Result(len(keys), batch.first(0), bad_key)


@dataclass(frozen=True, slots=True)
class Silent(Step):
    """A step that says nothing of itself, and runs nowhere."""

    operator = "silent"

    def open(self, context: OperatorContext) -> Instance:
        raise NotImplementedError


def gate(stream: Stream, switch: Stream) -> Stream:
    """What a method of `Stream` would do."""
    job = stream._job
    return Stream(job, job.add(Gate("gates"), (stream._at, switch._at)))


def gated() -> Job:
    job = Job("gated")
    cars = job.source(KafkaSource("cars", value=Json()))
    switch = job.source(KafkaSource("switch", value=Json()))
    return gate(cars, switch).sink(KafkaSink("passed", value=Json()))


def passed(run: MemoryRun) -> list[Any]:
    return sorted(record.value for record in run.read("passed"))


@pytest.mark.parametrize("parallelism", [1, 3])
def test_each_port_has_its_records_and_what_the_operator_keeps_lasts_through_a_crash(parallelism: int) -> None:
    with MemoryRun(gated(), partitions=4, parallelism=parallelism) as run:
        for n in range(9):
            run.send("switch", n % 2 == 0, b"%d" % n)
        run.checkpoint()
        for n in range(10):
            run.send("cars", n, b"%d" % n)
        run.crash()
        run.checkpoint()
        assert passed(run) == [0, 2, 4, 6, 8]
        run.send("switch", False, b"4")
        run.crash("completion")
        run.send("cars", 44, b"4")
        run.send("cars", 66, b"6")
        run.checkpoint()
        assert passed(run) == [66]
        assert (run.state("gates", b"4"), run.state("gates", b"6")) == (False, True)


def test_records_of_both_ports_meet_in_the_order_of_their_times() -> None:
    with MemoryRun(gated()) as run:
        for n, at in enumerate((10, 25, 40)):
            run.send("cars", n, b"a", timestamp=at)
        run.send("switch", True, b"a", timestamp=20)
        run.send("switch", False, b"a", timestamp=30)
        run.checkpoint()
        assert passed(run) == [1]


def test_the_job_shows_the_operator_with_the_inputs_of_its_ports() -> None:
    described = gated().definition().describe().splitlines()
    assert described[3] == "  gates     gate(name='gates')  <- source-1, source-2"


def test_what_may_have_changed_the_key_is_refused_before_it() -> None:
    job = Job("gated")
    cars, switch = (job.source(KafkaSource(topic, value=Json())) for topic in ("cars", "switch"))
    with pytest.raises(ConfigurationError, match="before it may change the key"):
        gate(cars.map_records(lambda record: record), switch)


def test_records_of_one_source_at_both_ports_are_refused() -> None:
    cars = Job("gated").source(KafkaSource("cars", value=Json()))
    with pytest.raises(ConfigurationError, match="nothing says whether a record comes before itself"):
        gate(cars, cars.map(bool))


def test_a_step_that_says_nothing_of_itself_is_taken_to_change_the_key() -> None:
    job = Job("silent")
    cars = job.source(KafkaSource("cars", value=Json()))
    behind = Stream(job, job.add(Silent(), (cars._at,)))
    with pytest.raises(ConfigurationError, match="may change the key"):
        behind.stateful_map(lambda state, value: (state, value), name="counts")


def test_nothing_is_promised_of_a_step_that_does_not_say_it() -> None:
    silent = Silent()
    promises = (silent.keeps_key, silent.keeps_values, silent.one_to_one, silent.feeds_broadcast)
    assert (promises, silent.sees_time) == ((False, False, False, False), True)


def test_these_steps_keep_the_key_and_all_others_may_change_it() -> None:
    said = {step.__name__ for step in steps_of(Step) if not keeps_key_unless_told(step)}
    assert said == {
        *("MapRecords", "MapAsyncRecords", "FlatMapRecords", "MapBatches", "Process", "KeyBy", "KeyByRecords"),
        "StatefulMapRecords",
    }


def keeps_key_unless_told(step: type[Step]) -> bool:
    field = step.__dataclass_fields__.get("keeps_key")
    return bool(step.keeps_key if field is None else field.default)


def steps_of(base: Any) -> Iterator[type[Step]]:
    """Yield the steps of the product that a job can have."""
    for step in base.__subclasses__():
        yield from steps_of(step)
        if not isabstract(step) and step.__module__.startswith("twopc."):
            yield step
