"""Topics that meet where state by key is kept: one state a key, whatever crashes, and however the job is changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from twopc import Avro, ConfigurationError, Job, Json, KafkaSink, KafkaSource, String
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment, _in_memory
from twopc.testing.memory.sink import MemorySink
from twopc.testing.memory.source import MemorySource

USERS = [f"user-{number}" for number in range(9)]
VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": [{"name": "user", "type": "string"}, {"name": "ms", "type": "long"}],
}


def total(state: int | None, value: int) -> tuple[int, int]:
    new = (state or 0) + value
    return new, new


def counting(*topics: str, state: str = "total") -> Job:
    """A job that sums the values of each key over these topics, a source each."""
    job = Job("sums")
    streams = [job.source(KafkaSource(topic, key=String(), value=Json()), name=f"of-{topic}") for topic in topics]
    merged = streams[0] if len(streams) == 1 else streams[0].merge(*streams[1:])
    return merged.stateful_map(total, name=state).sink(KafkaSink("sums", key=String(), value=Json()), name="out")


class Given:
    """What was sent to a job, and the sums that it must have."""

    def __init__(self, run: MemoryRun) -> None:
        self.run = run
        self.numbers = count(1)
        self.sums: dict[str, int] = dict.fromkeys(USERS, 0)

    def send(self, *topics: str) -> None:
        """Send a number for each user to each topic."""
        for user in USERS:
            for topic in topics:
                number = next(self.numbers)
                self.sums[user] += number
                self.run.send(topic, number, user)

    def check(self) -> None:
        """Each user's sums have come out in their order, the last is the state's, and it is that of all topics."""
        self.run.checkpoint()
        last: dict[str, int] = {}
        for record in self.run.read("sums"):
            assert record.value > last.get(record.key, 0)
            last[record.key] = record.value
        assert last == self.sums
        assert {user: self.run.state("total", user) for user in USERS} == self.sums

    def goes_on(self, job: Job, parallelism: int = 2, **settings: Any) -> None:
        """Kill the job, and start another version of it on the same topics and checkpoints."""
        run, definition = self.run, job.definition()
        if run._process is not None:
            run.crash()
        run._definition = definition.replaced(
            {key: _in_memory(end, run._topics) for key, end in definition.ends.items()}
        )
        run._sources = [each for each in run._definition.sources.values() if isinstance(each, MemorySource)]
        run._sinks = [each for each in run._definition.sinks.values() if isinstance(each, MemorySink)]
        for topic in run._inputs:
            run._topics.create(topic)
        run._settings = replace(run._settings, parallelism=parallelism, **settings)


@pytest.mark.parametrize("after", ["processing", "pre-commit", "completion"])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_key_has_one_state_over_two_topics_of_other_formats_through_a_crash(after: Moment, parallelism: int) -> None:
    job = Job("fan-in")
    web = job.source(KafkaSource("web", key=String(), value=Json()), name="web").map(lambda visit: visit["ms"])
    app = job.source(KafkaSource("app", key=String(), value=Avro(VISIT)), name="app").map(lambda visit: visit["ms"])
    web.merge(app).stateful_map(total, name="total").sink(KafkaSink("sums", key=String(), value=Json()))
    with MemoryRun(job, partitions=4, parallelism=parallelism) as run:
        for round_number in range(1, 4):
            for user in USERS:
                run.send("web", {"ms": 1, "browser": "b"}, user)
                run.send("app", {"user": user, "ms": 10}, user)
            if round_number == 2:
                run.crash(after)
            run.checkpoint()
            assert [run.state("total", user) for user in USERS] == [11 * round_number] * len(USERS)
        last = {record.key: record.value for record in run.read("sums")}
        assert last == dict.fromkeys(USERS, 33)


def test_the_state_goes_with_its_partition_number_to_any_parallelism() -> None:
    with MemoryRun(counting("web", "shop"), partitions=5, parallelism=2) as run:
        given = Given(run)
        for parallelism in (3, 1, 4, 2, 7):
            given.send("web", "shop")
            given.check()
            given.goes_on(counting("web", "shop"), parallelism)
        given.send("web", "shop")
        given.check()


def test_a_topic_that_is_added_goes_on_with_the_state_that_is_there_and_one_that_is_dropped_leaves_it() -> None:
    with MemoryRun(counting("web"), partitions=3, parallelism=2) as run:
        given = Given(run)
        given.send("web")
        given.check()
        given.goes_on(counting("web", "shop"), 3)
        given.send("web", "shop")
        given.check()
        given.goes_on(counting("shop"), 2)
        with pytest.raises(ConfigurationError, match=r"positions of input 'web'.*--drop-inputs web"):
            run.checkpoint()
        given.goes_on(counting("shop"), 2, drop_inputs=("web",))
        given.send("shop")
        given.check()


def test_an_operator_that_was_renamed_is_refused_and_its_state_given_up_by_its_id() -> None:
    with MemoryRun(counting("web", "shop"), partitions=3, parallelism=2) as run:
        given = Given(run)
        given.send("web", "shop")
        given.check()
        given.goes_on(counting("web", "shop", state="sum"), 3)
        with pytest.raises(ConfigurationError, match=r"state 'total'.*--drop-states total"):
            run.checkpoint()
        given.goes_on(counting("web", "shop", state="sum"), 3, drop_states=("total",))
        run.send("shop", 5, USERS[0])
        run.checkpoint()
        assert run.state("sum", USERS[0]) == 5
