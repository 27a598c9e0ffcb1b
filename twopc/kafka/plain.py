"""The writers without transactions: at least once waits for every record at a checkpoint, none waits for nothing."""

from __future__ import annotations

import logging

from twopc.errors import CheckpointDeclined, TwoPhaseCommitError
from twopc.kafka.channel import Channel
from twopc.kafka.identity import Identity
from twopc.kafka.output import Output
from twopc.kafka.writer_config import WriterConfig
from twopc.protocol.ids import CheckpointId
from twopc.record import Batch

log = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0


class PlainWriter:
    """Writes at once, for everyone to see; what a crash leaves behind is written again after it."""

    def __init__(self, config: WriterConfig, output: Output, identity: Identity, *, wait_for_delivery: bool) -> None:
        self._output = output
        self._identity = identity
        self._wait_for_delivery = wait_for_delivery
        self._patience = config.settings.checkpoint_timeout_ms / 1000
        for topic in output.static_topics:
            output.learn(topic)
        self._channel = Channel(config.plain(), identity.doubt)

    def write(self, batch: Batch) -> int:
        return self._output.write(self._channel, batch)

    def pre_commit(self, checkpoint_id: CheckpointId) -> None:
        """Return when everything written so far is delivered, if that was promised."""
        self._identity.check_once(checkpoint_id)
        if not self._wait_for_delivery:
            return
        left = self._channel.flush(self._patience)
        if left:
            raise CheckpointDeclined(
                f"{left} records were not delivered within checkpoint_timeout_ms; they still may be"
            )

    def close(self) -> None:
        try:
            left = self._channel.flush(CLOSE_SECONDS)
        except TwoPhaseCommitError as error:
            log.warning("records were not delivered before the end: %s", error)
        else:
            if left:
                log.warning("%d records were not delivered before the end", left)
