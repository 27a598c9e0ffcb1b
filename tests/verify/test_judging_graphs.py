"""Outputs of a job of two sources and two sinks, right and then spoilt in one record: each finding has its name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest
from file_sink import FileSink

from twopc import Job, KafkaSink, KafkaSource
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.operators.turn import Turn
from twopc.testing.rows import InputRow, batch_of
from twopc.verify.findings import Kind, Verdict
from twopc.verify.history import Expected, Found, Outcome, Transaction
from twopc.verify.judge import verdict_on
from twopc.verify.paths import Paths
from twopc.verify.plan import plan_of
from twopc.verify.replay import Replay

RECORDS = 40
"""Of each topic, in two partitions."""

Topics = dict[str, list[Found]]


def routed() -> JobDefinition:
    """All go to one topic; the even ones, of both sources, to another too."""
    job = Job("routed")
    web = job.source(KafkaSource("web"), name="web")
    both = web.merge(job.source(KafkaSource("app"), name="app").map(bytes.upper))
    both.sink(KafkaSink("all"), name="all")
    both.filter(lambda value: int(value[1:]) % 2 == 0).sink(KafkaSink("even"), name="even")
    return job.definition()


def rows(topic: str) -> list[InputRow]:
    """Each key is in one partition of its topic, and in both topics."""
    return [InputRow(f"{topic[0]}{n}".encode(), b"k%d" % (n % 4), n % 2, n // 2, topic_=topic) for n in range(RECORDS)]


def made(definition: JobDefinition) -> dict[str, list[Expected]]:
    replay, topics = Replay(Paths.of(definition)), defaultdict[str, list[Expected]](list)
    for source in definition.sources:
        for each in replay.make(Turn.of(source, batch_of(rows(source)))):
            topics[each.topic].append(each.expected)
    return topics


def written(expected: Mapping[str, Iterable[Expected]]) -> Topics:
    """What a subtask writes that reads both sources in turn, five records at a time; keys keep their partition."""
    found: Topics = {}
    for topic, every in expected.items():
        turns = sorted(every, key=lambda each: (each.source.offset // 5, each.source.partition.topic))
        ends = [0, 0]
        found[topic] = []
        for each in turns:
            number = each.source.partition.partition
            partition = TopicPartition(topic, number)
            transaction = Transaction(1, 0, partition, ends[number] // 10, Outcome.COMMITTED)
            found[topic].append(Found(Place(partition, ends[number]), each.key, each.value, (), transaction))
            ends[number] += 1
    return found


def judged(expected: Mapping[str, Iterable[Expected]], found: Topics) -> dict[str, Verdict]:
    return {
        topic: verdict_on(topic, every, sorted(found[topic], key=lambda each: each.place))
        for topic, every in expected.items()
    }


def counts(definition: JobDefinition, spoil: Callable[[Topics], None]) -> dict[str, dict[Kind, int]]:
    expected = made(definition)
    found = written(expected)
    spoil(found)
    for records in found.values():
        _renumber(records)
    return {topic: dict(verdict.counts) for topic, verdict in judged(expected, found).items()}


def _renumber(records: list[Found]) -> None:
    """Give every record the offset at which it stands now."""
    ends = [0, 0]
    for index, each in enumerate(records):
        number = each.place.partition.partition
        records[index] = replace(each, place=Place(each.place.partition, ends[number]))
        ends[number] += 1


def of_value(records: list[Found], value: bytes) -> int:
    return next(index for index, each in enumerate(records) if each.value == value)


def lose(found: Topics) -> None:
    del found["all"][of_value(found["all"], b"A26")]


def duplicate(found: Topics) -> None:
    found["even"].append(found["even"][of_value(found["even"], b"w4")])


def swap(found: Topics) -> None:
    """Two records of one key, of one input partition."""
    records = found["all"]
    one, other = of_value(records, b"w4"), of_value(records, b"w8")
    records[one], records[other] = records[other], records[one]


def move(found: Topics) -> None:
    """To the topic in which it has no business, and out of its own."""
    records = found["all"]
    record = records.pop(of_value(records, b"A7"))
    found["even"].append(replace(record, place=Place(TopicPartition("even", 1), 0)))


def change(found: Topics) -> None:
    """A value that the job makes of no record, in the place of a right one. Its key is in both topics."""
    records = found["even"]
    index = of_value(records, b"A6")
    records[index] = replace(records[index], value=b"A5")


def abort(found: Topics) -> None:
    """Records of a transaction that was not committed are seen."""
    records = found["even"]
    transaction = Transaction(1, 0, TopicPartition("even", 0), 99, Outcome.ABORTED)
    records.append(replace(records[0], transaction=transaction))


def foreign(found: Topics) -> None:
    records = found["all"]
    records.append(replace(records[0], key=b"nobody"))


@pytest.mark.parametrize(
    ("spoil", "all_", "even"),
    [
        (lambda found: None, {}, {}),
        (lose, {Kind.TORN: 1}, {}),
        (duplicate, {}, {Kind.DUPLICATED: 1}),
        (swap, {Kind.REORDERED: 2}, {}),
        (move, {Kind.TORN: 1}, {Kind.UNEXPECTED: 1}),
        (change, {}, {Kind.TORN: 1, Kind.UNEXPECTED: 1}),
        (abort, {}, {Kind.ABORTED: 1}),
        (foreign, {Kind.UNEXPECTED: 1}, {}),
    ],
)
def test_what_is_wrong_is_named_in_the_topic_where_it_is(
    spoil: Callable[[Topics], None], all_: dict[Kind, int], even: dict[Kind, int]
) -> None:
    assert counts(routed(), spoil) == {"all": all_, "even": even}


def test_a_transaction_that_is_missing_whole_is_lost() -> None:
    def cut(found: Topics) -> None:
        found["all"] = [each for each in found["all"] if each.place.partition.partition == 0 or each.place.offset < 30]

    assert counts(routed(), cut) == {"all": {Kind.LOST: 10}, "even": {}}


def branched() -> JobDefinition:
    """One stream in two directions that meet in one topic, through sinks of their own."""
    job = Job("branched")
    web = job.source(KafkaSource("web"), name="web")
    web.map(bytes.upper).sink(KafkaSink("out"), name="upper")
    web.map(bytes.lower).sink(KafkaSink("out"), name="lower")
    return job.definition()


def test_two_paths_into_one_topic_may_interleave_in_any_way_and_keep_their_own_order() -> None:
    def apart(found: Topics) -> None:
        found["out"].sort(key=lambda each: (each.value or b"").isupper())

    def swap_one(found: Topics) -> None:
        records = found["out"]
        one, other = of_value(records, b"W4"), of_value(records, b"W8")
        records[one], records[other] = records[other], records[one]

    assert counts(branched(), lambda found: None) == {"out": {}}
    assert counts(branched(), apart) == {"out": {}}
    assert counts(branched(), swap_one) == {"out": {Kind.REORDERED: 2}}


def partly() -> JobDefinition:
    """A job of which one sink, and one state, can't be judged."""
    job = Job("partly")
    orders = job.source(KafkaSource("orders"), name="orders")
    orders.sink(KafkaSink("copy"), name="copy")
    orders.sink(FileSink("folder"), name="files")
    both = job.source(KafkaSource(["web", "app"]))
    both.stateful_map(lambda total, value: ((total or 0) + 1, value), name="count").sink(KafkaSink("counted"))
    return job.definition()


def test_what_can_not_be_judged_is_left_out_by_name_and_the_rest_is_judged() -> None:
    plan = plan_of(partly(), (), (), "s:1")
    assert [*plan.outputs] == ["copy"]
    files, counted = plan.left_out
    assert files == "what 'files' writes is not judged: it is a FileSink, no KafkaSink"
    assert counted.startswith("topic 'counted' is not judged: 'count' works by key on the records of app, web")


def test_a_job_of_which_nothing_can_be_judged_is_refused_with_what_keeps_it() -> None:
    job = Job("files").source(KafkaSource("in")).sink(FileSink("folder")).definition()
    with pytest.raises(ConfigurationError, match=r"job 'files' can't be verified: what 'sink-1' writes.*FileSink"):
        plan_of(job, (), (), "s:1")


def test_topics_of_several_sources_and_sinks_are_named_by_operator() -> None:
    plan = plan_of(routed(), ["web=web-copy"], ["even=even-copy"], "s:1")
    assert (plan.topics, [*plan.outputs]) == (("web-copy", "app"), ["all", "even-copy"])
    assert [*plan_of(routed(), (), ["even"], "s:1").outputs] == ["even"]
    with pytest.raises(ConfigurationError, match="the job has web, app; say which of them, as --input OPERATOR=TOPIC"):
        plan_of(routed(), ["web-copy"], (), "s:1")
    with pytest.raises(ConfigurationError, match="writes to all, even; say OPERATOR=TOPIC"):
        plan_of(routed(), (), ["elsewhere"], "s:1")


def test_one_topic_name_on_two_clusters_is_refused() -> None:
    job = Job("twice")
    stream = job.source(KafkaSource("in"))
    stream.sink(KafkaSink("out"), name="here")
    stream.sink(KafkaSink("out", bootstrap_servers="there:1"), name="there")
    with pytest.raises(ConfigurationError, match="'here', 'there' write to topics named 'out' of two clusters"):
        plan_of(job.definition(), (), (), "s:1")
