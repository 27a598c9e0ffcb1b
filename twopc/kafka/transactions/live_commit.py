"""Committing what this subtask pre-committed: through the producer that wrote it, and in doubt by asking the broker."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException

from twopc.errors import TransactionLost
from twopc.faults.points import CrashPoint, reached
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.failures import error_of
from twopc.kafka.clients.retry import backoff, call_with_retry
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.resume import settle
from twopc.kafka.transactions.slots import Slot, SlotPool, SlotState
from twopc.protocol.facts import Committable
from twopc.sink import Outcome

log = logging.getLogger(__name__)

COMMIT_TIMEOUT_SECONDS = 10.0
LIVE_SECONDS = 20.0
"""So long the producer itself may try; then the broker is asked: the client may have lost it for good."""


class LiveCommit:
    """Used by the commit thread."""

    def __init__(self, pool: SlotPool, client: ControlClient, budget_seconds: float) -> None:
        self._pool = pool
        self._client = client
        self._budget = budget_seconds

    def commit(self, committable: Committable) -> None:
        """Commit, whatever became of earlier tries; raise TransactionLost if it is gone."""
        prepared = PreparedTransaction.from_committable(committable)
        slot = self._pool.find(prepared.transactional_id, prepared.checkpoint_id)
        if slot is not None and slot.state is not SlotState.PRE_COMMITTED:
            return
        committed = slot is not None and self._topics_are_the_same(prepared) and self._commit_live(slot)
        if not committed:
            # The outcome is in doubt, and must not be an abort: the broker is asked instead.
            self._settle(committable, prepared)
        reached(CrashPoint.AFTER_END_TXN, checkpoint=prepared.checkpoint_id, subtask=prepared.subtask)
        if slot is not None:
            # Its producer may still send an EndTxn, so it must not write the next transaction.
            self._pool.settled(slot, doubtful=not committed)

    def _topics_are_the_same(self, prepared: PreparedTransaction) -> bool:
        """Whether a commit would still reach the topics that were written to: the broker would not say."""
        now = call_with_retry(lambda: self._client.topics(prepared.topic_ids), self._budget)
        return {name: topic.topic_id for name, topic in now.items()} == dict(prepared.topic_ids)

    def _commit_live(self, slot: Slot) -> bool:
        """Return whether the producer says that it has committed; if not, the outcome is in doubt."""
        for _ in backoff(min(self._budget, LIVE_SECONDS)):
            try:
                slot.producer.client.commit_transaction(COMMIT_TIMEOUT_SECONDS)
            except KafkaException as error:
                cause = error_of(error)
                log.info("commit of %s: %s", slot.transactional_id, cause)
                if not cause.retriable():
                    return False
            else:
                return True
        return False

    def _settle(self, committable: Committable, prepared: PreparedTransaction) -> None:
        settled = settle(self._client, committable, confirmed=False, budget_seconds=self._budget)
        if settled.outcome is Outcome.LOST:
            partitions = ", ".join(str(partition) for partition in prepared.partitions)
            error = TransactionLost(
                f"transaction {committable.name} belongs to a completed checkpoint and can't be committed: "
                f"{settled.evidence}. Its output to {partitions} is missing"
            )
            # The next attempt's recovery writes it again, or refuses to go on.
            error.restartable = True
            raise error
