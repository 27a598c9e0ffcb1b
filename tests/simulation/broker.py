"""The broker of a simulated run: `BrokerModel`, and what happens to it and around it.

It has either transaction protocol, writes markers late, restarts, has its transaction coordinator move, forgets
transactional ids that nobody uses, and has a topic deleted and made again, for output or for input: as the world's
faults say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.simulation.broker_model import BrokerModel, GroupOffsets
from tests.simulation.job import INPUTS, KAFKA_TOPICS, OWN, lanes_of, topics_of
from tests.simulation.own_text import mark_of, plain_text
from tests.simulation.partition_log import PartitionLog
from tests.simulation.transaction_coordinator import Producer, TransactionalId
from tests.simulation.transaction_tables import Code
from tests.simulation.world import EPOCH_MS, World
from twopc.config import NO_TIMEOUT_MS
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.topic_partition import TopicPartition
from twopc.protocol.ids import AttemptId

#: What librdkafka speaks, whatever the broker's protocol.
PRODUCE_VERSION, OFFSET_COMMIT_VERSION, END_TXN_VERSION = 10, 3, 1
#: Answers after which a client asks again, or asks another broker.
RETRIABLE = frozenset(
    (
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
        Code.CONCURRENT_TRANSACTIONS,
        Code.NOT_ENOUGH_REPLICAS,
    )
)
AWAY_MS = (20, 200, 1_000, 3_000)
AWAY_CODES = (Code.NOT_COORDINATOR, Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE)
IDLE_MS = 1_500
_OPEN = (BrokerState.ONGOING, BrokerState.PREPARE_COMMIT, BrokerState.PREPARE_ABORT)


class SimBroker:
    """Outlives every process of the job. `on_commit` is told whose transaction is to be committed, with its offsets.

    A lane is a partition of an input; every output topic has a partition for each. `pre_committed` says for which
    checkpoint, by transactional id and start, where a transaction does not say so itself.
    """

    def __init__(self, world: World) -> None:
        faults = world.faults
        self.world = world
        self.lanes = lanes_of(faults)
        self.topics = topics_of(faults)
        self.pre_committed: dict[tuple[str, int], str] = {}
        self.on_commit: Callable[[str, GroupOffsets], None] = lambda name, offsets: None
        self.recreated = 0
        self.input_recreated = 0
        self.input_is_read = False
        self.first_read_at: dict[tuple[int, int], int] = {}
        """When a record was first read, by lane and offset, in a job that joins."""
        self.planned_whole: set[AttemptId] = set()
        """The attempts whose plan has the partition that comes late."""
        self.bounded: dict[tuple[AttemptId, TopicPartition], int] = {}
        """Where an attempt was told to end reading a partition."""
        self.cut_short: set[AttemptId] = set()
        """The attempts that were told to end before the end of the input."""
        self.input_begins_at = {str(partition): 0 for partition in self.lanes}
        self.forgotten: set[str] = set()
        self._model = BrokerModel(
            len(self.lanes) * len(self.topics),
            bumps=faults.broker_protocol == 2,
            last_producer_epoch=faults.last_producer_epoch,
            on_prepare=self._decided,
        )
        self._coordinator = self._model.coordinator
        self._away_until = 0
        self._away_code = Code.NONE
        self._wrote_to: dict[str, int] = {}
        self._told: dict[object, int] = {}
        for kind, every_ms, do in (
            ("broker away", faults.broker_away_every_ms, self._go_away),
            ("ids forgotten", faults.ids_forgotten_every_ms, self._forget),
            ("topic recreated", faults.topic_recreated_every_ms, self._recreate),
            ("input recreated", faults.input_recreated_every_ms, self._recreate_input),
        ):
            for at, strike in world.dice.planned(kind, every_ms, faults.fault_phase_ms):
                world.after(at, partial(self._strike, do, strike))

    @property
    def ids(self) -> dict[str, TransactionalId]:
        return self._coordinator.ids

    @property
    def offsets(self) -> GroupOffsets:
        return self._model.offsets

    def log_of(self, topic: str, lane: int) -> int:
        """Return which of the model's partitions an output topic has for a lane; its own has the one behind it."""
        number = (lane + 1) % len(self.lanes) if topic == KAFKA_TOPICS[OWN] else lane
        return self.topics.index(topic) * len(self.lanes) + number

    def index_of(self, partition: TopicPartition) -> int:
        """Return which of the model's partitions a partition of an output topic is."""
        return self.topics.index(partition.topic) * len(self.lanes) + partition.partition

    def partition_log(self, partition: TopicPartition) -> PartitionLog:
        """Return the log of a partition of an output topic."""
        return self._model.logs[self.index_of(partition)]

    def output_partition(self, log: int) -> TopicPartition:
        """Return which output partition one of the model's is."""
        topic, lane = divmod(log, len(self.lanes))
        return TopicPartition(self.topics[topic], lane)

    @property
    def has_grown(self) -> bool:
        """Whether the partition of the input that comes late is there."""
        return self.world.now_ms >= self.world.faults.input_grows_ms

    @property
    def topic_id(self) -> str:
        return f"output-id-{self.recreated}"

    @property
    def input_id(self) -> str:
        return f"input-id-{self.input_recreated}"

    def ended_input(self, message: str) -> bool:
        """Whether this is what a job has to say whose input topic was deleted and made again: it can't go on."""
        return self.input_recreated > 0 and any(
            f"input topic {topic!r} was deleted and created again" in message for topic in INPUTS.values()
        )

    def ended_output(self, message: str) -> bool:
        """The same of its output topic: started again, it goes on."""
        return self.recreated > 0 and any(
            f"output topic {topic!r} was deleted and created again" in message for topic in KAFKA_TOPICS.values()
        )

    @property
    def away(self) -> Code:
        """What every request is answered with while the broker restarts or its coordinator moves."""
        return self._away_code if self.world.now_ms < self._away_until else Code.NONE

    def init_producer_id(self, name: str, timeout_ms: int) -> tuple[Code, Producer]:
        if self.away:
            return self.away, (-1, -1)
        code, producer = self._coordinator.init_producer_id(name, timeout_ms, self._now())
        if not code:
            self.world.note("broker", "InitProducerId", name, *producer)
        return code, producer

    def add_partition(self, name: str, producer: Producer, partition: int) -> Code:
        """AddPartitionsToTxn: the first one begins the transaction."""
        if self.away:
            return self.away
        code = self._beginning(name, lambda: self._coordinator.add_partition(name, producer, partition, self._now()))
        if not code:
            self._wrote_to.setdefault(name, self.recreated)
        return code

    def produce(self, name: str, producer: Producer, partition: int, value: str) -> Code:
        return self.away or self._model.produce(
            name, producer, partition, value, version=PRODUCE_VERSION, now_ms=self._now()
        )

    def add_offsets(self, name: str, producer: Producer, offsets: dict[TopicPartition, tuple[int, str]]) -> Code:
        """AddOffsetsToTxn and TxnOffsetCommit."""
        return (
            self.away
            or self._beginning(name, lambda: self._model.add_offsets(name, producer, self._now()))
            or self._model.commit_offsets(name, producer, offsets, version=OFFSET_COMMIT_VERSION, now_ms=self._now())
        )

    def end(self, name: str, producer: Producer, *, commit: bool, version: int = END_TXN_VERSION) -> Code:
        """EndTxn."""
        if self.away:
            return self.away
        code, _ = self._coordinator.end(name, producer, commit=commit, version=version, now_ms=self._now())
        self.world.note("broker", "EndTxn commit" if commit else "EndTxn abort", name, producer, f"-> {code.name}")
        return code

    def tell_topic(self) -> str:
        """Return the topic's id, and remember to whom."""
        self._told[_asker(self.world)] = self.recreated
        return self.topic_id

    def has_committed(self, name: str) -> bool:
        """Whether the last transaction of this id is to be committed, or is."""
        return self.ids[name].state in (BrokerState.PREPARE_COMMIT, BrokerState.COMPLETE_COMMIT)

    def check_topic(self, name: str) -> None:
        """Whoever has been told that the topic is another one must not commit what was written to the one before."""
        if self._wrote_to.get(name, self.recreated) < self._told.get(_asker(self.world), 0):
            self.world.violated("committed into a topic that was recreated", name)

    def open_transactions(self) -> list[str]:
        return [name for name, held in self.ids.items() if held.state in _OPEN]

    def read_committed(self, topic: str, lane: int) -> list[str]:
        """Return the records for a lane, without marks of time."""
        values = self._model.logs[self.log_of(topic, lane)].read(committed=True)
        return [plain_text(value) for value in values if mark_of(value) is None]

    def _now(self) -> int:
        return EPOCH_MS + self.world.now_ms

    def _beginning(self, name: str, ask: Callable[[], Code]) -> Code:
        held = self.ids.get(name)
        before = None if held is None else held.state
        code = ask()
        if held is not None and before is not BrokerState.ONGOING and held.state is BrokerState.ONGOING:
            self._wrote_to.pop(name, None)
            self._expire_later(held)
        return code

    def _expire_later(self, held: TransactionalId) -> None:
        began = (held.producer, held.start_ms)

        def expire() -> None:
            if began == (held.producer, held.start_ms) and held.state is BrokerState.ONGOING:
                self.world.note("broker", "EXPIRED", held.name, *held.producer)
                self._coordinator.fence(held, self._now())

        if held.timeout_ms < NO_TIMEOUT_MS:
            self.world.after(held.timeout_ms, expire)

    def _decided(self, held: TransactionalId) -> None:
        if held.state is BrokerState.PREPARE_COMMIT:
            self.on_commit(held.name, self._model.pending_offsets.get(held.producer_id, {}))

        def finish() -> None:
            self._model.finish(held.name, self._now())
            self.world.note("broker", held.state.value, held.name, *held.producer)

        window = 0 if self.world.calm else self.world.delay(self.world.faults.prepare_ms)
        if window:
            self.world.after(window, finish)
        else:
            finish()

    def _strike(self, do: Callable[[int], None], strike: int) -> None:
        if not self.world.calm and not self.world.over:
            do(strike)

    def _go_away(self, strike: int) -> None:
        self._away_code = self.world.of(AWAY_CODES, strike)
        self._away_until = self.world.now_ms + self.world.of(AWAY_MS, strike // len(AWAY_CODES))
        self.world.coverage[f"broker {self._away_code.name}"] += 1
        self.world.note("broker", self._away_code.name, f"until {self._away_until} ms")

    def _forget(self, strike: int) -> None:
        gone = self._coordinator.forget(self._now() - IDLE_MS)
        self.forgotten.update(gone)
        self.world.coverage["broker forgot ids"] += len(gone)
        self.world.note("broker", "FORGOT", *gone)

    def _recreate(self, strike: int) -> None:
        self.recreated += 1
        self._model.recreate_topic()
        self.world.coverage["broker topic recreated"] += 1
        self.world.note("broker", "TOPIC RECREATED", self.topic_id)

    def _recreate_input(self, strike: int) -> None:
        """Whoever has read nothing yet begins in the new one, as well as in the one before."""
        if self.input_is_read:
            self.input_recreated += 1
            self.world.coverage["broker input recreated"] += 1
            self.world.note("broker", "INPUT RECREATED", self.input_id)


def _asker(world: World) -> object:
    return None if world.lane is None else (world.lane.process.name, world.lane.name)
