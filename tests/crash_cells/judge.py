"""What a job under drill must have left behind, compared with what it has: every invariant that one run can break.

Each check yields what is wrong, in words; nothing asks the code under test but to read its own files back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.crash_cells.rig import PARTITIONS, Rig, partition_of
from tests.leak_audit import Place, wait_until_clean
from twopc.checkpoints.catalog import read_job
from twopc.kafka.positions import offsets_of
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import TopicPartition as Partition
from twopc.state.keyed import KeyedState
from twopc.state.restore import restore_state
from twopc.state.storage import CheckpointStorage
from twopc.testing.topics import Read, read_topic

_SHOWN = 3
_QUESTIONS = 4
_NEVER = frozenset({"TransactionLost", "CheckpointCorrupted", "ProtocolViolation"})


Check = Callable[[Rig], Iterator[str]]


def judge(rig: Rig, checks: Sequence[Check] | None = None) -> list[str]:
    """Return every violation of these checks, or of all, as sentences; none if all is as it must be."""
    return [violation for check in (CHECKS if checks is None else checks) for violation in check(rig)]


def nothing_is_left(rig: Rig) -> Iterator[str]:
    """No open transaction, no hidden output, no process, file or lock that should not be there."""
    place = Place(
        job=rig.job,
        bootstrap_servers=rig.bootstrap_servers,
        topics=(rig.output,),
        checkpoint_dir=rig.checkpoint_dir,
        marker=rig.marker,
        temporary=rig.temporary,
        empty=(rig.temporary,),
    )
    yield from map(str, wait_until_clean(place))


def output_is_the_inputs(rig: Rig) -> Iterator[str]:
    """Each record exactly once, in order within its key and partition; and two readers see the same."""
    first, second = (read_topic(rig.bootstrap_servers, rig.output) for _ in range(2))
    if first != second:
        yield "two readers do not agree on what stands at which offset"
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for record in first:
        found[record.key or b""].append(record.value or b"")
    for key in sorted(rig.expected.keys() | found.keys()):
        yield from _differences(key, rig.expected.get(key, []), found.get(key, []))
    yield from _disorder(first)


def _differences(key: bytes, expected: list[bytes], found: list[bytes]) -> Iterator[str]:
    if found == expected:
        return
    lost, more = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    if lost:
        yield f"key {key.decode()}: {lost.total()} records lost, such as {_some(lost)}"
    if more:
        yield f"key {key.decode()}: {more.total()} records too many, such as {_some(more)}"
    if not lost and not more:
        yield f"key {key.decode()}: the records are there, once each, but not in order"


def _some(values: Counter[bytes]) -> str:
    return ", ".join(value.decode() for value in list(values)[:_SHOWN])


def _disorder(records: list[Read]) -> Iterator[str]:
    """A partition of the output may mix input partitions, but keeps the order of each."""
    last: dict[tuple[int, int], int] = {}
    for record in records:
        number = int((record.value or b"").partition(b":")[0])
        source = (record.partition, partition_of(number))
        if number < last.get(source, -1):
            yield f"output partition {record.partition}: {number} of input partition {source[1]} is late"
            return
        last[source] = number


def state_is_recomputed(rig: Rig) -> Iterator[str]:
    """The restored state of every subtask is what the input makes of it."""
    metadata = _newest(rig)
    storage = CheckpointStorage(rig.checkpoint_dir / rig.job)
    splits = [str(Partition(rig.input, number)) for number in range(PARTITIONS)]
    for snapshot in metadata.snapshots:
        folder = rig.folder / f"judged-{snapshot.subtask}"
        backend = restore_state(storage, metadata.snapshots, splits, snapshot.subtask, folder)
        try:
            state = KeyedState(backend)
            counts = [state.get_many("count", _partition_of_key(rig, key), [key])[0] for key in rig.expected]
        finally:
            backend.close()
        wanted = [b"%d" % len(values) for values in rig.expected.values()]
        if counts != wanted:
            yield f"subtask {snapshot.subtask}: the keyed state {counts} is not what the input makes, {wanted}"


def positions_are_the_end(rig: Rig) -> Iterator[str]:
    """Checkpoint, consumer group and input agree."""
    per_partition = Counter(partition_of(number) for number in range(rig.records))
    last = _positions(rig)[-1]
    if last != per_partition:
        yield f"the last checkpoint stands at {last}, the input ends at {dict(per_partition)}"
    witnessed = _witnessed(rig)
    if {partition: offset for partition, (offset, _) in witnessed.items()} != last:
        yield f"the group stands at {witnessed}, the last checkpoint at {last}"


def positions_never_go_back(rig: Rig) -> Iterator[str]:
    """No checkpoint that is kept stands before an earlier one."""
    for earlier, later in pairwise(_positions(rig)):
        if any(later[partition] < position for partition, position in earlier.items()):
            yield f"positions went back from {earlier} to {later}"


def _positions(rig: Rig) -> list[dict[int, int]]:
    kept = [entry.metadata for entry in read_job(rig.checkpoint_dir, rig.job).completed]
    held = [offsets_of(metadata.positions) for metadata in kept if metadata]
    return [{partition.partition: offset for partition, offset in each.items()} for each in held]


def _witnessed(rig: Rig) -> dict[int, tuple[int, str]]:
    """What the group has committed: position, and the metadata that names the checkpoint.

    Each question is a new consumer's: one that asked while the broker came back was seen to wait for a minute.
    """
    for _ in range(_QUESTIONS - 1):
        with suppress(KafkaException):
            return _committed(rig)
    return _committed(rig)


def _committed(rig: Rig) -> dict[int, tuple[int, str]]:
    consumer = Consumer({"bootstrap.servers": rig.bootstrap_servers, "group.id": rig.job})
    try:
        asked = [TopicPartition(rig.input, number) for number in range(PARTITIONS)]
        return {item.partition: (item.offset, item.metadata or "") for item in consumer.committed(asked, timeout=20)}
    finally:
        consumer.close()


def ids_never_repeat(rig: Rig) -> Iterator[str]:
    """Each checkpoint id was triggered and completed once, in ascending order within and over attempts."""
    for kind in ("triggered", "completed"):
        seen = [(event["attempt"], event["checkpoint_id"]) for event in rig.events(kind)]
        # Several drivers of one job hear the same coordinator.
        by_attempt = list(dict.fromkeys(seen))
        ids = [checkpoint_id for _, checkpoint_id in sorted(by_attempt)]
        if any(later <= earlier for earlier, later in pairwise(ids)):
            yield f"checkpoint ids were {kind} out of order, or twice: {sorted(by_attempt)}"


def no_loss_was_reported(rig: Rig) -> Iterator[str]:
    """Where no transaction can time out, none may be lost, nor said to be; what an outrun attempt says is no matter."""
    newest = 0
    for event in rig.events():
        newest = max(newest, event["attempt"])
        outrun = event["attempt"] < newest
        if event["kind"] == "failed" and not outrun and event["error_type"] in _NEVER:
            yield f"attempt {event['attempt']} failed with {event['error_type']}: {event['message']}"


def _newest(rig: Rig) -> CheckpointMetadata:
    metadata = read_job(rig.checkpoint_dir, rig.job).completed[-1].metadata
    assert metadata is not None, "the newest checkpoint is damaged"
    return metadata


def _partition_of_key(rig: Rig, key: bytes) -> Partition:
    return Partition(rig.input, partition_of(int(key[1:])))


CHECKS: tuple[Check, ...] = (
    nothing_is_left,
    output_is_the_inputs,
    state_is_recomputed,
    positions_are_the_end,
    positions_never_go_back,
    ids_never_repeat,
    no_loss_was_reported,
)
