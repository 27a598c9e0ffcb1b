"""The verdict on one pre-committed Kafka transaction, from everything that can be known about it afterwards.

Invariants:

- Commit is said only of the very transaction that was recorded: same producer id, same producer epoch, same start time,
  still open. A producer keeps its id and epoch over all its transactions, so anything less commits the wrong one.
- Lost is said only when the broker, or the lack of any evidence, leaves nothing else; it always says why, and whether
  it is certain that none of it was or will be committed. Never of one that wrote to no topic: nothing of it is missing.
- An error code is not evidence: none enters here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from twopc.kafka.clients.described_transaction import BrokerState, Described


class Witness(Enum):
    """The testimony of the positions that were committed inside the transaction about its outcome."""

    COMMITTED = "the group holds the positions of this very checkpoint"
    NOT_COMMITTED = "the group holds other positions"
    UNKNOWN = "there are no positions to ask for"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The record of the transaction from when it was pre-committed. `start_ms` is by the broker's clock."""

    producer_id: int
    producer_epoch: int
    start_ms: int
    topic_ids: Mapping[str, str]

    @property
    def holds_output(self) -> bool:
        """Whether it wrote to a topic, and did not only move positions."""
        return bool(self.topic_ids)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence. `described` is None if the broker doesn't know the id; a topic that is gone has no id."""

    described: Described | None
    topic_ids: Mapping[str, str]
    confirmed: bool
    witness: Witness


@dataclass(frozen=True, slots=True)
class Commit:
    """It is open and whole: commit it."""


@dataclass(frozen=True, slots=True)
class AlreadyCommitted:
    """It is committed; `why` we know."""

    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """It can't be committed any more; `why` we know. `certain`: the broker itself says that it was aborted."""

    why: str
    certain: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """The broker is about to change its state: ask again."""


Verdict = Commit | AlreadyCommitted | Lost | Wait


def judge(recorded: Recorded, evidence: Evidence) -> Verdict:
    """Return what to do about the transaction."""
    verdict = judge_fate(recorded, evidence)
    if isinstance(verdict, Lost) and not recorded.holds_output:
        return AlreadyCommitted("it held positions only, and no output that could be missing")
    return verdict


def judge_fate(recorded: Recorded, evidence: Evidence) -> Verdict:
    """Return what became of the transaction, whatever it held."""
    described = evidence.described
    if described is not None and described.start_ms == recorded.start_ms:
        verdict = _judge_itself(recorded, described, evidence)
        if verdict is not None:
            return verdict
    if described is not None and _moved_on(recorded, described):
        return AlreadyCommitted("its producer has begun a later transaction, as it may only after committing this one")
    return _judge_without_broker(evidence)


def _judge_itself(recorded: Recorded, described: Described, evidence: Evidence) -> Verdict | None:
    """Judge by the broker's word on this very transaction; None if it has none."""
    same_producer = described.producer_id == recorded.producer_id
    match described.state:
        case BrokerState.ONGOING if same_producer and described.producer_epoch == recorded.producer_epoch:
            return _judge_topics(recorded.topic_ids, evidence.topic_ids) or Commit()
        case BrokerState.PREPARE_COMMIT | BrokerState.COMPLETE_COMMIT if same_producer:
            return AlreadyCommitted(f"the broker says {described.state.value} for its start time")
        case BrokerState.PREPARE_ABORT | BrokerState.COMPLETE_ABORT:
            return Lost(
                f"the broker says {described.state.value}: it was aborted, by its time-out (transaction.timeout.ms) or "
                "by another producer with the same transactional id",
                # An abort by protocol version 2 that comes after the commit changes what the broker says, not the data.
                certain=not evidence.confirmed and evidence.witness is not Witness.COMMITTED,
            )
        case BrokerState.PREPARE_EPOCH_FENCE:
            return Wait()
        case _:
            return None


def _judge_topics(before: Mapping[str, str], now: Mapping[str, str]) -> Lost | None:
    """A commit into a topic that was deleted or recreated succeeds, and the data is gone: refuse it, by name."""
    for topic, topic_id in sorted(before.items()):
        if topic not in now:
            return Lost(f"topic {topic} was deleted after the transaction wrote to it")
        if now[topic] != topic_id:
            return Lost(f"topic {topic} was deleted and created again after the transaction wrote to it")
    return None


def _moved_on(recorded: Recorded, described: Described) -> bool:
    same_producer = (described.producer_id, described.producer_epoch) == (recorded.producer_id, recorded.producer_epoch)
    return same_producer and described.start_ms > recorded.start_ms


def _judge_without_broker(evidence: Evidence) -> Verdict:
    """The broker no longer knows this transaction: what was stored elsewhere decides."""
    if evidence.confirmed:
        return AlreadyCommitted("its commit was confirmed to the coordinator")
    if evidence.witness is Witness.COMMITTED:
        return AlreadyCommitted(evidence.witness.value)
    known = "nothing" if evidence.described is None else evidence.described.state.value
    return Lost(
        f"the broker knows {known} of its transactional id now, its commit was never confirmed, and "
        f"{evidence.witness.value}"
    )
