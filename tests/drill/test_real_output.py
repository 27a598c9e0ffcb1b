"""What a job really wrote since a checkpoint, judged from logs that are forged byte by byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.kafka.test_batches import marker, written
from tests.snapshots import changed
from twopc.drill.bounds import Bounds, Side, bounds_of, prepared_of
from twopc.drill.real_output import OutputTopic, RealOutput
from twopc.drill.replay_range import ReplayRange
from twopc.drill.restore_checks import repeated_input
from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.input.batches import log_batches
from twopc.kafka.input.topic_reader import Ranges
from twopc.kafka.place import Place
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.sink import DeliveryGuarantee
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.verify.history import Expected, Found
from twopc.verify.transaction_lookup import TransactionLookup
from twopc.verify.transactions import Transactions

IN, OUT, OTHER = TopicPartition("in", 0), TopicPartition("out", 0), TopicPartition("other", 0)
BEGAN_MS = 150
"""When the checkpoint's own transaction began: the second of those in the log."""


@dataclass
class ForgedLog:
    """Partitions that hold transactions of values, each a checkpoint's; all have key `a`."""

    logs: dict[TopicPartition, bytes] = field(default_factory=dict)
    found: dict[TopicPartition, list[Found]] = field(default_factory=dict)

    def write(self, partition: TopicPartition, *transactions: Sequence[str], aborted: int = -1) -> None:
        log, offset = b"", 0
        records = []
        for number, values in enumerate(transactions):
            log += written(offset, len(values))
            for value in values:
                records.append(Found(Place(partition, offset), b"a", value.encode()))
                offset += 1
            log += marker(offset, int(number != aborted), time_ms=100 * (number + 1))
            offset += 1
        self.logs[partition], self.found[partition] = log, records

    def lookup(self, ranges: Ranges) -> TransactionLookup:
        return {each: Transactions(each, log_batches(self.logs[each])) for each in ranges}

    def see(self, ranges: Ranges, lookup: TransactionLookup) -> list[Found]:
        return [
            Found(each.place, each.key, each.value, (), lookup[partition].at(each.place.offset))
            for partition in ranges
            for each in self.found[partition]
        ]


class ClippedLog(ForgedLog):
    """Gives no more of a log than it is asked for."""

    def lookup(self, ranges: Ranges) -> TransactionLookup:
        return {
            each: Transactions(each, [batch for batch in log_batches(self.logs[each]) if batch.last >= first], first)
            for each, (first, _) in ranges.items()
        }

    def see(self, ranges: Ranges, lookup: TransactionLookup) -> list[Found]:
        return [each for each in super().see(ranges, lookup) if each.place.offset >= ranges[each.place.partition][0]]


def checkpoint(*partitions: TopicPartition) -> CheckpointMetadata:
    """A checkpoint at in[0]@5, whose one transaction wrote to these partitions."""
    topic_ids = {each.topic: "id" for each in partitions}
    prepared = PreparedTransaction(
        "t", CheckpointId(2), SubtaskIndex(0), 7, 3, BEGAN_MS, 1_000, partitions, topic_ids, None, ()
    )
    held = (PartitionPosition(IN, "id", Position(5)).to_split_position(),)
    pending = (prepared.to_committable(),) if partitions else ()
    snapshot = SubtaskSnapshot.of(SubtaskIndex(0), held, StateHandle("chk-2/subtask-0", "", 0, 0), pending)
    kind = CheckpointKind.PERIODIC
    return CheckpointMetadata("job", CheckpointId(2), AttemptId(1), 1, kind, 0, 0, (snapshot,))


def judge(
    log: ForgedLog,
    expected: Mapping[str, str],
    *,
    metadata: CheckpointMetadata | None = None,
    guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
) -> Check:
    """Judge all topics in the log; the values that are expected are letters, in the order of the input."""
    made = [
        (topic, Expected(Place(IN, 5 + number), b"a", value.encode()))
        for topic, values in expected.items()
        for number, value in enumerate(values)
    ]
    written = {each: (Position(0), Position(100)) for each in log.logs}
    replay_range = ReplayRange({IN: Position(5)}, {IN: Position(9)}, {IN: Position(9)}, written)
    return real_output(log, metadata or checkpoint(OUT), replay_range, guarantee).judge(made, {})


def real_output(
    log: ForgedLog,
    metadata: CheckpointMetadata,
    replay_range: ReplayRange,
    guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
) -> RealOutput:
    topic = OutputTopic(log, guarantee, prepared_of(metadata.committables))
    return RealOutput(dict.fromkeys((each.topic for each in replay_range.written), topic), metadata, replay_range)


def log_of(*transactions: Sequence[str], aborted: int = -1) -> ForgedLog:
    log = ForgedLog()
    log.write(OUT, *transactions, aborted=aborted)
    return log


def test_what_was_written_since_the_checkpoint_once_holds() -> None:
    check = judge(log_of("ab", "cde", "fg", "hi"), {"out": "fghi"})
    assert check.verdict is CheckVerdict.HELD
    assert check.text.startswith("4 records of out are what the replay makes, compared by position")


@pytest.mark.parametrize(
    ("after", "named"),
    [
        pytest.param(("fghi", "fghi"), "4 duplicated", id="all of it again"),
        pytest.param(("ffghi",), "1 duplicated", id="the first record twice"),
        pytest.param(("f", "fghi"), "1 duplicated", id="a transaction and its repetition"),
        pytest.param(("ghi",), "1 lost", id="the first record lost"),
        pytest.param(("efghi",), "1 unexpected", id="the last before the checkpoint, again"),
    ],
)
def test_what_is_wrong_right_behind_the_checkpoint_is_named(after: tuple[str, ...], named: str) -> None:
    check = judge(log_of("ab", "cde", *after), {"out": "fghi"})
    assert (check.verdict, check.text) == (CheckVerdict.BROKEN, f"of the output: {named}")


def test_without_its_transaction_the_end_of_what_is_there_is_judged() -> None:
    assert judge(log_of("ab", "cde", "fghi"), {"out": "fghi"}, metadata=checkpoint()).verdict is CheckVerdict.HELD


def test_a_transaction_that_was_aborted_tells_nothing() -> None:
    log = log_of("ab", "cde", "cde", "fghi", aborted=1)
    log.found[OUT] = [each for each in log.found[OUT] if not 3 <= each.place.offset <= 5]
    assert judge(log, {"out": "fghi"}).verdict is CheckVerdict.HELD


def test_an_aborted_record_that_can_be_seen_is_named() -> None:
    check = judge(log_of("ab", "cde", "fghi", "f", aborted=3), {"out": "fghi"})
    assert (check.verdict, check.text) == (CheckVerdict.BROKEN, "of the output: 1 aborted")


def test_of_a_sink_that_promises_at_least_once_what_is_doubled_is_told_and_what_is_lost_is_broken() -> None:
    guarantee = DeliveryGuarantee.AT_LEAST_ONCE
    doubled = judge(log_of("ab", "cde", "fg", "fghi"), {"out": "fghi"}, guarantee=guarantee)
    assert doubled.verdict is CheckVerdict.HELD
    assert doubled.text.endswith("besides 2 duplicated, which the sink does not rule out")
    assert judge(log_of("ab", "cde", "fhi"), {"out": "fghi"}, guarantee=guarantee).verdict is CheckVerdict.BROKEN


def test_of_a_sink_that_promises_nothing_nothing_is_judged() -> None:
    check = judge(log_of("ab"), {"out": "fghi"}, guarantee=DeliveryGuarantee.NONE)
    assert check.verdict is CheckVerdict.NOT_JUDGED
    assert "'none' promises nothing" in check.text


def test_topics_that_a_function_chooses_are_judged_one_by_one() -> None:
    log = log_of("ab", "cd", "fg")
    log.write(OTHER, "x", "e", "h")
    metadata = checkpoint(OUT, OTHER)
    assert judge(log, {"out": "fg", "other": "h"}, metadata=metadata).verdict is CheckVerdict.HELD
    assert "1 lost" in judge(log, {"out": "fg", "other": "hi"}, metadata=metadata).text


def test_a_topic_that_no_checkpoint_names_is_said_to_be_left_out() -> None:
    check = judge(log_of("ab", "cd", "fg"), {"out": "fg", "new": "h"})
    assert (check.verdict, "not judged: new" in check.text) == (CheckVerdict.HELD, True)


def test_where_no_topic_is_known_nothing_is_judged() -> None:
    assert "by a function" in judge(ForgedLog(), {"new": "h"}).text


def test_where_nothing_was_written_since_there_is_nothing_to_compare() -> None:
    assert "name an older one" in judge(log_of("ab", "cde"), {"out": ""}).text


TWO = Bounds({IN: SubtaskIndex(0)}, {(SubtaskIndex(0), OUT): 10, (SubtaskIndex(1), OUT): 20})


@pytest.mark.parametrize(
    ("sources", "offset", "side"),
    [
        pytest.param([IN], 10, Side.BEFORE, id="of the subtask's own transaction"),
        pytest.param([IN], 15, Side.OPEN, id="while another had not come to its checkpoint"),
        pytest.param([IN], 21, Side.AFTER, id="behind all of them"),
        pytest.param([OTHER], 21, Side.OPEN, id="of a partition that nobody read then"),
        pytest.param([IN, OTHER], 5, Side.OPEN, id="of several, one of them unknown"),
    ],
)
def test_on_which_side_of_the_checkpoint_a_record_is(sources: list[TopicPartition], offset: int, side: Side) -> None:
    assert TWO.side(sources, Found(Place(OUT, offset), b"a", b"")) is side


def test_a_checkpoint_stands_behind_the_last_record_of_its_own_transaction() -> None:
    log = log_of("ab", "cde", "fg")
    metadata = checkpoint(OUT)
    bounds = bounds_of(metadata, prepared_of(metadata.committables), log.lookup({OUT: (Position(0), Position(100))}))
    assert [bounds.side([IN], Found(Place(OUT, offset), b"a", b"")) for offset in (5, 6)] == [Side.BEFORE, Side.AFTER]


def of_keys(log: ForgedLog, keys: str) -> None:
    """Give each record of the output a key of its own."""
    log.found[OUT] = [replace(each, key=keys[number].encode()) for number, each in enumerate(log.found[OUT])]


def test_records_of_two_keys_that_changed_places_behind_the_checkpoint_are_reordered() -> None:
    log = log_of("ab", "cde", "gf")
    of_keys(log, "aaaaayx")
    made = [
        ("out", Expected(Place(IN, 5 + at), key, value)) for at, (key, value) in enumerate(((b"x", b"f"), (b"y", b"g")))
    ]
    replay_range = ReplayRange(
        {IN: Position(5)}, {IN: Position(7)}, {IN: Position(7)}, {OUT: (Position(0), Position(100))}
    )
    check = real_output(log, checkpoint(OUT), replay_range).judge(made, {})
    assert (check.verdict, check.text) == (CheckVerdict.BROKEN, "of the output: 1 reordered")


def test_what_may_have_stood_there_before_the_checkpoint_is_not_held_against_the_order_of_the_input() -> None:
    """Where the checkpoint stood is not known: the old record of key x looks like the one that is still to come."""
    log = log_of("ab", "fg")
    of_keys(log, "aaxy")
    made = [
        ("out", Expected(Place(IN, 5 + at), key, value)) for at, (key, value) in enumerate(((b"y", b"g"), (b"x", b"f")))
    ]
    replay_range = ReplayRange(
        {IN: Position(5)}, {IN: Position(7)}, {IN: Position(6)}, {OUT: (Position(0), Position(100))}
    )
    check = real_output(log, checkpoint(), replay_range).judge(made, {})
    assert check.verdict is CheckVerdict.HELD


def idle(log: ForgedLog, *, producer: int = 7) -> CheckpointMetadata:
    """A checkpoint whose transaction, begun at 150, wrote nothing but the group's positions."""
    found = checkpoint(TopicPartition("__consumer_offsets", 0))
    [item] = found.committables
    assert log.logs
    prepared = replace(PreparedTransaction.from_committable(item), producer_id=producer)
    [snapshot] = found.snapshots
    return replace(found, snapshots=(changed(snapshot, committables=(prepared.to_committable(),)),))


def test_what_the_job_wrote_twice_is_found_where_only_positions_were_written_before_the_checkpoint() -> None:
    """What ended at 100 is from before; what its producer wrote then is from after, all of it."""
    log = log_of("ab", "fghi", "fghi")
    check = judge(log, {"out": "fghi"}, metadata=idle(log))
    assert (check.verdict, check.text) == (CheckVerdict.BROKEN, "of the output: 4 duplicated")


def test_where_the_checkpoint_stood_is_known_by_when_the_transactions_before_it_had_ended() -> None:
    log = log_of("fghi", "fghi")
    assert judge(log, {"out": "fghi"}, metadata=idle(log)).verdict is CheckVerdict.HELD


def test_what_looks_the_same_on_an_unknown_side_of_the_checkpoint_is_not_judged() -> None:
    """It was written twice, or the job made the same before."""
    check = judge(log_of("ab", "fghi", "fghi"), {"out": "fghi"}, metadata=checkpoint())
    assert check.verdict is CheckVerdict.NOT_JUDGED
    assert "4 that stand before them look the same" in check.text


def test_what_is_compared_by_value_only_is_said() -> None:
    check = judge(log_of("ab", "cde", "fghi"), {"out": "fghi"}, metadata=checkpoint())
    assert "compared by value from the end, as nothing tells where the checkpoint stood for 9 records" in check.text


def test_a_tail_that_does_not_reach_back_to_the_checkpoint_is_not_all_that_is_read() -> None:
    """What was written twice is longer than what is expected."""
    log = log_of("ab", "cde", *(["fghi"] * 400))
    replay_range = ReplayRange(
        {IN: Position(5)}, {IN: Position(9)}, {IN: Position(9)}, {OUT: (Position(0), Position(2_007))}
    )
    made = [("out", Expected(Place(IN, 5 + number), b"a", value.encode())) for number, value in enumerate("fghi")]
    check = real_output(ClippedLog(log.logs, log.found), checkpoint(OUT), replay_range).judge(made, {})
    assert (check.verdict, check.text) == (CheckVerdict.BROKEN, f"of the output: {399 * 4} duplicated")


def at(checkpoint_id: int, attempt: int, *positions: int) -> CheckpointMetadata:
    held = tuple(SplitPosition(f"in[{each}]", each, [p, "id"]) for each, p in enumerate(positions))
    snapshot = SubtaskSnapshot.of(SubtaskIndex(0), held, StateHandle("chk-2/subtask-0", "", 0, 0), ())
    found = checkpoint()
    return replace(found, checkpoint_id=CheckpointId(checkpoint_id), attempt=AttemptId(attempt), snapshots=(snapshot,))


def test_positions_that_went_back_say_what_was_written_twice() -> None:
    [said] = repeated_input([at(3, 1, 10, 7), at(5, 2, 60, 7), at(6, 3, 20, 7), at(9, 3, 50, 9)])
    assert said == (
        "repeated: checkpoint 5 of attempt 2 had in[0] up to offset 59, and attempt 3 went back to 20 or before: "
        "readers see the output of offsets 20 to 49 twice"
    )


def test_positions_that_grow_say_nothing() -> None:
    assert not list(repeated_input([at(3, 1, 10), at(5, 2, 10), at(6, 3, 20)]))


def test_a_job_that_went_back_broke_its_output_also_where_values_tell_nothing() -> None:
    log = log_of("fghi")
    replay_range = ReplayRange(
        {IN: Position(5)}, {IN: Position(9)}, {IN: Position(9)}, {OUT: (Position(0), Position(100))}, ("twice",)
    )
    made = [("out", Expected(Place(IN, 5 + number), b"a", value.encode())) for number, value in enumerate("fghi")]
    check = real_output(log, checkpoint(), replay_range).judge(made, {})
    assert (check.verdict, check.findings) == (CheckVerdict.BROKEN, ("twice",))
    check = real_output(log, checkpoint(), replay_range, DeliveryGuarantee.AT_LEAST_ONCE).judge(made, {})
    assert check.verdict is CheckVerdict.HELD


def test_of_topics_of_several_sinks_each_is_held_to_what_its_own_sink_promises() -> None:
    log = log_of("ab", "cde", "fg", "fg")
    log.write(OTHER, "x", "y", "h")
    written = {each: (Position(0), Position(100)) for each in (OUT, OTHER)}
    replay_range = ReplayRange({IN: Position(5)}, {IN: Position(9)}, {IN: Position(9)}, written)
    metadata = checkpoint(OUT, OTHER)
    made = [("out", Expected(Place(IN, 5), b"a", b"f")), ("out", Expected(Place(IN, 6), b"a", b"g"))]
    made.append(("other", Expected(Place(IN, 7), b"a", b"h")))

    def check(out: DeliveryGuarantee, other: DeliveryGuarantee) -> Check:
        prepared = prepared_of(metadata.committables)
        topics = {"out": OutputTopic(log, out, prepared), "other": OutputTopic(log, other, prepared)}
        return RealOutput(topics, metadata, replay_range).judge(made, {})

    once, least, none = DeliveryGuarantee
    assert (check(once, least).verdict, check(once, least).text) == (CheckVerdict.BROKEN, "of the output: 2 duplicated")
    assert check(least, once).verdict is CheckVerdict.HELD
    assert check(none, once).text.endswith("promises nothing, and such write to out")
