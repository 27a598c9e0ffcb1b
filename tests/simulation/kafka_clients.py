"""The clients of the simulated broker, in the shape of those that production code is given: their requests get lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.broker import RETRIABLE, SimBroker
from tests.simulation.broker_model import OFFSETS
from tests.simulation.transaction_tables import Code
from twopc.context import SubtaskContext
from twopc.errors import Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.kafka.clients.control_client import GroupOffset, OpenTransaction, TopicInfo
from twopc.kafka.clients.described_transaction import END_TXN_VERSION, BrokerState, Described
from twopc.kafka.clients.failures import failure
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.topic_identity import TopicIdentity

CLUSTER = "cluster"
ANOTHER_CLUSTER = "another cluster"
SLOW_SECONDS = (0.001, 0.02, 0.2)
LATE_MS = (5, 50, 500, 5_000)

T = TypeVar("T")


def _lossy(broker: SimBroker, ask: Callable[[], T]) -> T:
    """Send a request: it may take its time, be lost, or be applied while its answer is lost."""
    world = broker.world
    if world.calm and not broker.away:
        return ask()
    slow = world.strikes("slow answer", 0.1)
    if slow:
        world.sleep(world.of(SLOW_SECONDS, slow))
    if world.strikes("request lost", world.faults.broker_refuses):
        raise Unavailable("simulated: the request was lost")
    if broker.away:
        raise Unavailable(f"simulated: {broker.away.name}")
    answer = ask()
    if world.strikes("reply lost", world.faults.broker_reply_lost):
        raise Unavailable("simulated: the answer was lost")
    return answer


class SimControlClient:
    """As `twopc.kafka.clients.control_client.ControlClient`."""

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    def describe_transaction(self, transactional_id: str) -> OpenTransaction | None:
        return _lossy(self._broker, lambda: self._describe(transactional_id))

    def list_transactions(self) -> dict[str, BrokerState]:
        return _lossy(self._broker, lambda: {name: found.state for name, found in self._broker.ids.items()})

    def end_transaction(
        self, transactional_id: str, producer_id: int, producer_epoch: int, *, commit: bool = True
    ) -> bool:
        producer = (producer_id, producer_epoch)
        self._broker.check_topic(transactional_id)
        try:
            code = _lossy(
                self._broker,
                lambda: self._broker.end(transactional_id, producer, commit=commit, version=END_TXN_VERSION),
            )
            return code is Code.NONE
        except Unavailable:
            return False

    def init_producer_id(self, transactional_id: str, timeout_ms: int) -> int:
        code, (_, epoch) = _lossy(self._broker, lambda: self._broker.init_producer_id(transactional_id, timeout_ms))
        if code:
            raise Unavailable(f"simulated: {code.name}")
        return epoch

    def topics(self, names: Iterable[str], node: int | None = None) -> dict[str, TopicInfo]:
        return _lossy(self._broker, lambda: {name: self._topic(name) for name in names})

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        logs = {each: self._broker.partition_log(each) for each in partitions}
        return _lossy(self._broker, lambda: {each: Position(log.high_watermark) for each, log in logs.items()})

    def group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        held = _lossy(self._broker, lambda: dict(self._broker.offsets))
        return {each: GroupOffset(Position(held[each][0]), held[each][1]) for each in partitions if each in held}

    def _topic(self, name: str) -> TopicInfo:
        broker = self._broker
        topic_id = broker.tell_topic() if name in broker.topics else broker.input_id
        return TopicInfo(topic_id, len(broker.lanes), (0,) * len(broker.lanes))

    def _describe(self, name: str) -> OpenTransaction | None:
        found = self._broker.ids.get(name)
        if found is None:
            return None
        partitions = frozenset(
            self._broker.output_partition(partition) for partition in found.partitions if partition != OFFSETS
        )
        described = Described(found.state, found.producer_id, found.producer_epoch, found.start_ms)
        return OpenTransaction(described, found.timeout_ms, partitions)


def identity_of(context: SubtaskContext, broker: SimBroker) -> TopicIdentity:
    """Return what a subtask's source and sink share, as through `twopc.kafka.topics.subtask_client.SubtaskClient`."""
    identity: TopicIdentity = context.shared.setdefault("identity", TopicIdentity(SimControlClient(broker)))
    return identity


def _ignore(code: Code) -> None:
    """Nobody waits for this answer any more."""


def _raise(code: int, *, retriable: bool = False) -> None:
    raise KafkaException(KafkaError(code, retriable=retriable))


class SimProducer:
    """As `confluent_kafka.Producer`, transactional; it learns only from answers that its id was taken over."""

    def __init__(self, broker: SimBroker, name: str, timeout_ms: int) -> None:
        self._broker = broker
        self._name = name
        self._timeout_ms = timeout_ms
        self._queue: list[tuple[int, str]] = []
        self._failed = Code.NONE
        self._added: set[int] = set()
        self.producer = (-1, -1)

    def init_transactions(self) -> None:
        """Ask until the broker is no longer busy with the transaction before; raise Unavailable when it won't."""
        code = self._patiently(self._init)
        if code:
            raise Unavailable(f"simulated: {self._name} can't be initialised: {code.name}")

    def _init(self) -> Code:
        code, self.producer = self._broker.init_producer_id(self._name, self._timeout_ms)
        return code

    def begin_transaction(self) -> None:
        if self._failed:
            _raise(KafkaError._FENCED)
        self._queue.clear()
        self._added.clear()

    def produce(self, partition: int, value: str) -> None:
        """Queue a record; some are sent at once."""
        self._queue.append((partition, value))
        if self._broker.world.rng.random() < 0.5:
            self._send()

    @property
    def waiting(self) -> int:
        """How many records are not sent."""
        return len(self._queue)

    def flush(self) -> None:
        self._send()
        if self._failed:
            raise failure("producing", KafkaError(self._failed))

    def send_offsets_to_transaction(self, offsets: Sequence[Any], group: object, timeout: float) -> None:
        world = self._broker.world
        if world.strikes("offsets lost", world.faults.broker_refuses):
            _raise(KafkaError._TIMED_OUT, retriable=True)
        witnesses = {TopicPartition(item.topic, item.partition): (item.offset, item.metadata) for item in offsets}
        if not self._failed:
            code = self._patiently(lambda: self._broker.add_offsets(self._name, self.producer, witnesses))
            if code in RETRIABLE:
                _raise(code, retriable=True)
            self._failed = code
        if self._failed:
            _raise(self._failed)

    def commit_transaction(self, timeout: float) -> None:
        world = self._broker.world
        slow = world.strikes("slow EndTxn", 0.2)
        if slow:
            world.sleep(world.of(SLOW_SECONDS, slow))
        late = world.strikes("EndTxn late", world.faults.end_txn_late)
        if late:
            reached(CrashPoint.END_TXN_NOT_APPLIED)
            world.after(world.of(LATE_MS, late), lambda: _ignore(self._end()))
            _raise(KafkaError._STATE)
        if world.strikes("EndTxn lost", world.faults.broker_refuses):
            _raise(KafkaError._TIMED_OUT, retriable=True)
        self._broker.check_topic(self._name)
        code = self._end()
        if self._broker.ids[self._name].state is BrokerState.PREPARE_COMMIT:
            reached(CrashPoint.END_TXN_CONCURRENT)
        if world.strikes("EndTxn reply lost", world.faults.broker_reply_lost):
            reached(CrashPoint.END_TXN_REPLY_LOST)
            _raise(KafkaError._TIMED_OUT, retriable=True)
        if code:
            _raise(code, retriable=code in RETRIABLE)

    def abort_transaction(self, timeout: float) -> None:
        self._queue.clear()
        if self._added and not self._failed:
            self._broker.end(self._name, self.producer, commit=False)

    def _end(self) -> Code:
        return self._broker.end(self._name, self.producer, commit=True)

    def _send(self) -> None:
        for partition, value in self._queue:
            if not self._failed:
                self._failed = self._patiently(partial(self._append, partition, value))
        self._queue.clear()

    def _append(self, partition: int, value: str) -> Code:
        if partition not in self._added:
            code = self._broker.add_partition(self._name, self.producer, partition)
            if code:
                return code
            self._added.add(partition)
        return self._broker.produce(self._name, self.producer, partition, value)

    def _patiently(self, ask: Callable[[], Code]) -> Code:
        """Ask again while the broker is busy with what was before, or away."""
        code = ask()
        for _ in range(50):
            if code not in RETRIABLE:
                break
            self._broker.world.sleep(0.02)
            code = ask()
        return code


class SimTrackedProducer:
    """As `twopc.kafka.output.tracked_producer.TrackedProducer`."""

    def __init__(self, producer: SimProducer) -> None:
        self.client = producer
        self.topics: set[str] = set()

    def reset(self) -> None:
        self.topics.clear()

    def flush(self, seconds: float) -> int:
        return self.client.waiting

    def deliver(self, seconds: float) -> None:
        self.client.flush()

    def send_positions(self, offsets: Sequence[Any], group: object, seconds: float) -> None:
        self.client.send_offsets_to_transaction(offsets, group, seconds)

    def know(self, topic: str) -> None:
        """Nothing has to be learned of a topic."""
