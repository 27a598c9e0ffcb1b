"""The writers without transactions: one waits for nothing, the other at a checkpoint for every record (at least once).

Records are there at once, for everyone to see; what a crash leaves behind is written again after it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from twopc.errors import ProtocolViolation, TwoPhaseCommitError
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.output.backlog import Backlog
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.output.tracked_producer import TrackedProducer
from twopc.kafka.output.writer_config import WriterConfig
from twopc.kafka.topics.known_topics import known_outputs
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.protocol.facts import Committable, KnownOutput
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.sink import PreCommit, SinkWriter

log = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0


class NonTransactionalWriter(SinkWriter):
    """Waits for nothing."""

    def __init__(
        self, config: WriterConfig, output: TopicOutput, client: LeaderClient, identity: TopicIdentity
    ) -> None:
        self._output = output
        self._client = client
        self._identity = identity
        self._patience = config.settings.checkpoint_timeout_ms / 1000
        output.learn_static()
        self._producer = TrackedProducer(config.plain(), identity.doubt, Backlog(self._patience))

    @property
    def open_transaction(self) -> str | None:
        return None

    def begin(self) -> None:
        """Nothing to open."""

    def write(self, batch: Batch) -> int:
        return self._output.write(self._producer, batch)

    def bytes_written(self) -> tuple[int, ...]:
        return (self._output.bytes_written,)

    def known_outputs(self, earlier: Sequence[KnownOutput]) -> list[KnownOutput]:
        return known_outputs(self._output.topics.known, earlier if self._output.chooses else ())

    def pre_commit(self, request: PreCommit) -> Committable | None:
        self._identity.check_once(request.checkpoint_id)
        return None

    def commit(self, committable: Committable, proof: Complete) -> None:
        raise ProtocolViolation(f"{committable.name} can't be committed: this sink writes no transactions")

    def abort(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        try:
            left = self._producer.flush(CLOSE_SECONDS)
        except TwoPhaseCommitError as error:
            log.warning("records were not delivered before the end: %s", error)
        else:
            if left:
                log.warning("%d records were not delivered before the end", left)
        self._output.close()
        self._client.close()


class AtLeastOnceWriter(NonTransactionalWriter):
    """Lets no checkpoint pass before everything written so far is delivered."""

    def pre_commit(self, request: PreCommit) -> Committable | None:
        super().pre_commit(request)
        self._producer.deliver(self._patience)
        return None
