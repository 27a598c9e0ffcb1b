"""The driver's side of a Kafka sink: who may write, what became of what was written, what nobody will end any more."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.output.tracked_producer import TrackedProducer
from twopc.kafka.output.writer_config import WriterConfig
from twopc.kafka.topics.grants import WRITE, require_topic_grants
from twopc.kafka.topics.known_topics import KnownTopic, changed_topics, known_topics
from twopc.kafka.topics.new_topic import NewTopics, create_missing, merged
from twopc.kafka.topics.preflight import require_topics, transaction_timeout_ms
from twopc.kafka.topics.topic_lasting import LASTING_SETTINGS, TopicLasting
from twopc.kafka.transactions.claim import claim, refuse_successor
from twopc.kafka.transactions.lingering_transactions import abort_open, fence_earlier, traces
from twopc.kafka.transactions.missing_markers import MARKERS_BUDGET_SECONDS, close_committed
from twopc.kafka.transactions.resume import SettleAction, act_on_all, settle_all
from twopc.protocol.attempts import Traces
from twopc.protocol.facts import Committable, KnownOutput
from twopc.sink import Committer, Outcome, Settled, Sink

log = logging.getLogger(__name__)

SETTLE_BUDGET_SECONDS = 120.0
SWEEP_TIMEOUT_MS = 60_000


@runtime_checkable
class JoiningSink(Protocol):
    """A sink that may join; `twopc.kafka.sink.KafkaSink` is one."""

    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def new_topics(self) -> NewTopics: ...


class PlainCommitter(Committer):
    """Of a sink that writes without transactions: ends those of earlier attempts, which may have written with them.

    A connection lasts for one question: between two there may be hours, and another thread.
    """

    def __init__(self, config: WriterConfig, topics: tuple[str, ...], new_topics: NewTopics) -> None:
        self._config = config
        self._topics = topics
        self._new_topics = new_topics
        self._seen: dict[str, KnownTopic] = {}
        self._fenced = False

    def traces(self) -> Traces:
        with self._connect() as client:
            return traces(client, self._config.prefix)

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        if not committables:
            return []
        with self._connect() as client:
            settled = settle_all(client, committables, confirmed, SETTLE_BUDGET_SECONDS)
            close_committed(client, _committed(settled), MARKERS_BUDGET_SECONDS)
            return settled

    def give_up(self, committables: Sequence[Committable]) -> list[Settled]:
        with self._connect() as client:
            return act_on_all(client, committables, SETTLE_BUDGET_SECONDS, SettleAction.ABORT)

    def commit_held(self, committables: Sequence[Committable]) -> list[Settled]:
        with self._connect() as client:
            settled = act_on_all(client, committables, SETTLE_BUDGET_SECONDS, SettleAction.COMMIT)
            close_committed(client, _committed(settled), MARKERS_BUDGET_SECONDS)
            return settled

    def abort_lingering(self) -> list[str]:
        """Also where the sink is checked before an attempt starts: the first call comes before any subtask."""
        prefix, attempt = self._config.prefix, self._config.attempt
        with self._connect() as client:
            timeout_ms = self._timeout_ms(client)
            if self._fenced:
                refuse_successor(client, prefix, attempt)
                self._look_at_outputs(client)
                return abort_open(client, prefix, timeout_ms, attempt)
            self._check_producer(timeout_ms)
            config = self._config
            create_missing(self._new_topics, config.bootstrap_servers, config.properties, config.settings)
            if self._topics:
                require_topics(client, self._topics, "output")
                require_topic_grants(client, self._topics, WRITE)
                self._warn_of_what_goes(client)
                self._look_at_outputs(client)
            lingering = fence_earlier(client, prefix, timeout_ms, attempt)
            self._fenced = True
            return lingering

    def _look_at_outputs(self, client: LeaderClient) -> None:
        """Say what has become of the topics since the last look, which was half a minute ago: writers don't look."""
        now = client.topics(self._topics) if self._topics else {}
        for change in changed_topics(self._seen, now, "from the job's next attempt on"):
            log.warning("%s", change)
        self._seen |= {topic: KnownTopic.of(info) for topic, info in now.items()}

    def compare(self, known: Sequence[KnownOutput]) -> None:
        before = known_topics(known)
        with self._connect() as client:
            for change in changed_topics(before, client.topics(before)):
                log.warning("%s", change)

    def _warn_of_what_goes(self, client: LeaderClient) -> None:
        for topic in self._topics:
            for warning in TopicLasting.of(topic, client.settings_of(topic, LASTING_SETTINGS)).warnings():
                log.warning("%s", warning)

    def _connect(self) -> LeaderClient:
        return LeaderClient(self._config.bootstrap_servers, self._config.properties)

    def _timeout_ms(self, client: LeaderClient) -> int:
        return SWEEP_TIMEOUT_MS

    def _check_producer(self, timeout_ms: int) -> None:
        """Let librdkafka check its settings, which it does when it makes a producer; nothing is sent."""
        TrackedProducer(self._config.plain())


class TransactionalCommitter(PlainCommitter):
    """Of a sink that writes transactions: one attempt at a time may, and has claimed that."""

    def join(self, sink: Sink) -> None:
        assert isinstance(sink, JoiningSink), "only Kafka sinks have a Kafka transaction in common"
        self._new_topics = merged(self._new_topics, sink.new_topics)
        self._topics = tuple(dict.fromkeys((*self._topics, *sink.outputs)))

    def claim(self) -> None:
        with self._connect() as client:
            claim(client, self._config.prefix, self._timeout_ms(client), self._config.attempt)

    def _timeout_ms(self, client: LeaderClient) -> int:
        return transaction_timeout_ms(self._config.settings, client)

    def _check_producer(self, timeout_ms: int) -> None:
        TrackedProducer(self._config.transactional(f"{self._config.prefix}-check", timeout_ms))


def _committed(settled: Sequence[Settled]) -> list[Committable]:
    return [item.committable for item in settled if item.outcome in (Outcome.COMMITTED, Outcome.ALREADY_COMMITTED)]
