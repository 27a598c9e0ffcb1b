"""Transactional ids whose producer epoch is nearly used up: 32,766 requests each, or one record and a restart.

The transaction coordinator reads what it holds from its topic when it starts. Only `ALLOWED_CLIENT` may write there.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from kafka.protocol.producer import ProduceRequest
from kafka.record import MemoryRecordsBuilder

from tests.simulation.differential.connection import Connection
from tests.simulation.transaction_coordinator import Producer
from twopc.testing.broker_settings import INTERNAL_TOPIC_PARTITIONS

TOPIC = "__transaction_state"
ALLOWED_CLIENT = "__admin_client"
_EMPTY = 0


def store(bootstrap_servers: str, held: Mapping[str, Producer], timeout_ms: int) -> None:
    """Write the producers of transactional ids, as the coordinator does; it reads them when the broker starts again."""
    with Connection(bootstrap_servers, ALLOWED_CLIENT) as connection:
        for transactional_id, producer in held.items():
            _append(connection, transactional_id, producer, timeout_ms)


def _append(connection: Connection, transactional_id: str, producer: Producer, timeout_ms: int) -> None:
    name = transactional_id.encode()
    key = struct.pack(f">hh{len(name)}s", 0, len(name), name)
    # Version, producer, time-out, state, no partitions, last update, no start.
    value = struct.pack(">hqhibiqq", 0, *producer, timeout_ms, _EMPTY, -1, 0, -1)
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1_000)
    builder.append(timestamp=1, key=key, value=value)
    builder.close()
    topics = ProduceRequest.TopicProduceData
    partition = topics.PartitionProduceData(index=partition_of(transactional_id), records=builder.buffer())
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topics(name=TOPIC, partition_data=[partition])])
    (answer,) = connection.ask(request, 11).responses[0].partition_responses
    assert answer.error_code == 0, f"{TOPIC} can't be written to: {answer.error_code}"


def partition_of(transactional_id: str) -> int:
    """The partition of the coordinator's topic that an id belongs to."""
    number = 0
    for character in transactional_id:
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >= 1 << 31 else number
    return abs(signed) % INTERNAL_TOPIC_PARTITIONS
