"""The identity of a subtask's topics: their ids, which their leaders are asked for, show that none was made anew.

An id never comes back. So what was read before a question was asked came from the topics whose ids answer it, and one
question a checkpoint is enough: after the positions were taken, before the checkpoint is acknowledged.

A broker may answer from metadata older than another's, which serves the new topic already. Who leads a partition of the
new topic knows its id before it serves a record of it. So every broker is asked that one of those asked names as leader
of an input partition, from those that led before on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from twopc.errors import CheckpointDeclined, ConfigurationError, InputGone, Unavailable
from twopc.kafka.clients.control_client import TopicInfo
from twopc.kafka.clients.retry import backoff, call_with_retry
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId

log = logging.getLogger(__name__)

ANSWER_SECONDS = 10.0
"""How long the brokers may take to answer before the checkpoint is declined."""

GONE_SECONDS = 2.0
"""So long a topic must be missing to count as deleted: a broker that has just started may not know all of them."""

DOUBT_SECONDS = 5.0
"""How often a topic from which nothing comes, or to which nothing can be written, is asked about."""


class MetadataClient(Protocol):
    """The client that is asked; `SubtaskClient` is one. `node` is whom to ask, None for any broker."""

    def topics(self, names: Iterable[str], node: int | None = None) -> dict[str, TopicInfo]: ...


@dataclass(frozen=True, slots=True)
class _NotedTopic:
    topic: str
    topic_id: str
    is_input: bool
    partitions: frozenset[int] = frozenset()


class TopicIdentity:
    """The topics that a subtask uses on one cluster. Used by the data loop."""

    def __init__(self, brokers: MetadataClient) -> None:
        self._brokers = brokers
        self._noted: list[_NotedTopic] = []
        self._leaders: set[int] = set()
        self._checked = NO_CHECKPOINT
        self._doubted_at = 0.0

    def note_input(self, topic: str, topic_id: str, partitions: Iterable[int]) -> None:
        """From now on, require that the topic, of which these partitions are read, has this id."""
        self._noted.append(_NotedTopic(topic, topic_id, is_input=True, partitions=frozenset(partitions)))

    def note_output(self, topic: str, topic_id: str) -> None:
        """From now on, require that the topic has this id."""
        self._noted.append(_NotedTopic(topic, topic_id, is_input=False))

    def check(self, checkpoint_id: CheckpointId) -> None:
        """Raise ConfigurationError if a topic is another one now; InputGone; CheckpointDeclined if nobody answers."""
        try:
            call_with_retry(self._check, ANSWER_SECONDS)
        except Unavailable as error:
            raise CheckpointDeclined(f"whether the topics are still the same could not be told: {error}") from error
        self._checked = checkpoint_id

    def check_once(self, checkpoint_id: CheckpointId) -> None:
        """The same, unless it was done for this checkpoint before."""
        if self._checked != checkpoint_id:
            self.check(checkpoint_id)

    def doubt(self) -> None:
        """Raise ConfigurationError if a topic is another one now, or is gone; whoever waits in vain may always call."""
        now = time.monotonic()
        if now - self._doubted_at < DOUBT_SECONDS:
            return
        self._doubted_at = now
        self.check_if_answered()

    def check_if_answered(self) -> None:
        """Raise ConfigurationError if a topic is another one now, or is gone, as far as the brokers answer."""
        try:
            self._check()
        except Unavailable as error:
            log.debug("whether the topics are still the same could not be told: %s", error)

    def _check(self) -> None:
        missing: list[_NotedTopic] = []
        for _ in backoff(GONE_SECONDS):
            missing = self._missing()
            if not missing:
                return
        gone = missing[0]
        if gone.is_input:
            raise InputGone(deleted_input(gone.topic, gone.topic_id))
        raise ConfigurationError(_deleted_output(gone))

    def _missing(self) -> list[_NotedTopic]:
        """Return the topics that a broker doesn't know; raise ConfigurationError if one knows another by that name."""
        names = list(dict.fromkeys(topic.topic for topic in self._noted))
        if not names:
            return []
        to_ask: list[int | None] = [*self._leaders] or [None]
        missing: list[_NotedTopic] = []
        leaders: set[int] = set()
        self._leaders = set()  # Whoever doesn't answer now is asked again only if another still names it.
        for node in to_ask:
            found = self._brokers.topics(names, node)
            missing += [topic for topic in self._noted if topic.topic not in found]
            _refuse_recreated(self._noted, found)
            named = self._led_by(found)
            to_ask += named - leaders - {each for each in to_ask if each is not None}
            leaders |= named
        self._leaders = leaders
        return missing

    def _led_by(self, found: Mapping[str, TopicInfo]) -> set[int]:
        """Return who leads the input partitions, by an answer."""
        return {
            leader
            for topic in self._noted
            if topic.topic in found
            for number, leader in enumerate(found[topic.topic].leaders)
            if number in topic.partitions and leader >= 0
        }


def _refuse_recreated(noted: Iterable[_NotedTopic], found: Mapping[str, TopicInfo]) -> None:
    for topic in noted:
        if topic.topic in found and found[topic.topic].topic_id != topic.topic_id:
            describe = recreated_input if topic.is_input else _recreated_output
            raise ConfigurationError(describe(topic.topic, topic.topic_id, found[topic.topic].topic_id))


def recreated_input(topic: str, before: str, now: str) -> str:
    """Say what it means that an input topic has another id than before, and which ways on there are."""
    return (
        f"input topic {topic!r} was deleted and created again: its id was {before}, and is {now} now. The positions of "
        "the job mean nothing in the new one, and no record of it is in a completed checkpoint. To read the new one "
        "from its first record, or where start= of the source says, start once with --drop-inputs "
        f"{topic}: all other positions and all states stay as they are, with what they have of the old one"
    )


def deleted_input(topic: str, topic_id: str) -> str:
    """Say what it means that an input topic is gone, and which ways on there are."""
    return (
        f"input topic {topic!r} was deleted (its id was {topic_id}): nothing can be read from it any more. What was "
        "read before, up to the last completed checkpoint, is written. To go on without it, take it out of the job's "
        "source; to read a new one of that name, create it. In both cases start once with --drop-inputs "
        f"{topic}: all other positions and all states stay as they are"
    )


def _recreated_output(topic: str, before: str, now: str) -> str:
    return (
        f"output topic {topic!r} was deleted and created again: its id was {before}, and is {now} now. What was "
        "written since the last completed checkpoint is not committed. Start the job again: it goes on from that "
        "checkpoint, and writes to the new topic. What the old one held is gone: --from ID, or --from none, writes it "
        "again from an earlier checkpoint on, or from the beginning"
    )


def _deleted_output(gone: _NotedTopic) -> str:
    return (
        f"output topic {gone.topic!r} was deleted (its id was {gone.topic_id}): nothing can be written to it any more. "
        "What was written since the last completed checkpoint is not committed. Create the topic, and start the job "
        "again: it goes on from that checkpoint"
    )
