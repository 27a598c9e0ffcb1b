"""A broker with a quota slows a writer down, and keeps no checkpoint from completing."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

from tests.kafka.kit import DrivenSink, batch_of, settings
from twopc.kafka.clients.connection import Connection
from twopc.testing.topics import read_topic

pytestmark = [pytest.mark.broker, pytest.mark.proof]

RATE = 200_000
TIMEOUT_MS = 20_000
RECORDS, RECORD_BYTES, BATCH = 8_000, 1_000, 100
"""At this rate they take twice the time-out of a checkpoint."""


def test_every_checkpoint_is_in_time_and_who_throttles_is_told(
    servers: str, job: str, out: str, caplog: pytest.LogCaptureFixture
) -> None:
    allow(servers, job, RATE)
    driven = DrivenSink(servers, job, out, out, properties={"client.id": job})
    driven.settings = settings(servers, checkpoint_timeout_ms=TIMEOUT_MS)
    driven.start_attempt()
    checkpoints, next_at = 0, time.monotonic() + 2
    with caplog.at_level(logging.WARNING):
        for _ in range(RECORDS // BATCH):
            driven.writer.write(batch_of(*(os.urandom(RECORD_BYTES) for _ in range(BATCH))))
            if time.monotonic() >= next_at:
                checkpoints += 1
                driven.complete(driven.pre_commit(checkpoints, checkpoints))
                next_at = time.monotonic() + 2
        driven.complete(driven.pre_commit(checkpoints + 1, checkpoints + 1))
    assert checkpoints > 1
    assert len(read_topic(servers, out)) == RECORDS
    assert "writing waits for the brokers" in caplog.text
    assert "throttles this client" in caplog.text


def allow(servers: str, client_id: str, rate: int) -> None:
    """Let a client write so many bytes a second to each broker."""
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[entry.OpData(key="producer_byte_rate", value=float(rate), remove=False)],
            )
        ],
        validate_only=False,
    )

    async def ask(client: KafkaAdminClient) -> Any:
        return await client._send_request_to_controller(request)

    brokers = Connection(servers, {})
    try:
        [answer] = brokers.run(ask).entries
    finally:
        brokers.close()
    assert answer.error_code == 0, answer.error_message
