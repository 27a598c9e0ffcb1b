"""The simulated broker, asked as `play` asks."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.broker_model import BrokerModel
from tests.simulation.differential.observed import Answer, Description, VisiblePartition
from tests.simulation.differential.steps import (
    LONG_MS,
    PARTITIONS,
    AddOffsets,
    AddPartition,
    CommitOffsets,
    End,
    FetchOffset,
    Init,
    Produce,
)
from tests.simulation.transaction_coordinator import Producer, TransactionalId
from tests.simulation.transaction_tables import as_told
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.topic_partition import TopicPartition

PREPARED = (BrokerState.PREPARE_COMMIT, BrokerState.PREPARE_ABORT)
LAPSE_MS = 100_000
SOURCE = TopicPartition("source", 0)


class SimulatedSide:
    """Time goes on by a millisecond a request; what is prepared is finished when somebody looks."""

    def __init__(self, *, bumps: bool, held: Mapping[str, Producer] | None = None) -> None:
        self._model = BrokerModel(PARTITIONS, bumps=bumps)
        self._now_ms = 1_000
        for name, (producer_id, producer_epoch) in (held or {}).items():
            self._model.coordinator.ids[name] = TransactionalId(
                name, producer_id, LONG_MS, self._now_ms, producer_epoch=producer_epoch
            )

    def init(self, step: Init, expected: Producer | None) -> Answer:
        code, producer = self._model.coordinator.init_producer_id(step.name, step.timeout_ms, self._now(), expected)
        return Answer(as_told("InitProducerId", step.version, code), producer)

    def add_partition(self, step: AddPartition, producer: Producer) -> Answer:
        code = self._model.coordinator.add_partition(step.name, producer, step.partition, self._now())
        return Answer(as_told("AddPartitionsToTxn", step.version, code))

    def produce(self, step: Produce, producer: Producer, sequence: int, value: str) -> Answer:
        code = self._model.produce(
            step.name, producer, step.partition, value, version=step.version, now_ms=self._now(), sequence=sequence
        )
        return Answer(code)

    def add_offsets(self, step: AddOffsets, producer: Producer) -> Answer:
        return Answer(
            as_told("AddOffsetsToTxn", step.version, self._model.add_offsets(step.name, producer, self._now()))
        )

    def commit_offsets(self, step: CommitOffsets, producer: Producer) -> Answer:
        offsets = {SOURCE: (step.offset, f"checkpoint={step.offset}")}
        return Answer(
            self._model.commit_offsets(step.name, producer, offsets, version=step.version, now_ms=self._now())
        )

    def fetch_offset(self, step: FetchOffset) -> Answer:
        code, offset = self._model.fetch_offset(SOURCE, stable=step.stable)
        return Answer(code, offset=offset)

    def end(self, step: End, producer: Producer) -> Answer:
        code, successor = self._model.coordinator.end(
            step.name, producer, commit=step.commit, version=step.version, now_ms=self._now()
        )
        return Answer(as_told("EndTxn", step.version, code), successor)

    def settle(self, name: str) -> Description | None:
        held = self._model.coordinator.ids.get(name)
        if held is None:
            return None
        if held.state in PREPARED:
            self._model.finish(name, self._now())
        partitions = tuple(sorted(held.partitions))
        return Description(held.state.value, held.producer, held.timeout_ms, partitions, held.start_ms)

    def lapse(self) -> None:
        self._now_ms += LAPSE_MS
        for held in self._model.coordinator.timed_out(self._now_ms):
            self._model.coordinator.fence(held, self._now_ms)
            self._model.finish(held.name, self._now_ms)

    def seen(self, partition: int) -> VisiblePartition:
        log = self._model.logs[partition]
        committed, uncommitted = tuple(log.read(committed=True)), tuple(log.read(committed=False))
        return VisiblePartition(log.high_watermark, log.last_stable_offset, committed, uncommitted)

    def _now(self) -> int:
        self._now_ms += 1
        return self._now_ms
