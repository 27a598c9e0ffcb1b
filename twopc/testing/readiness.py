"""The readiness of a broker: all nodes are there, and the coordinators of groups and of transactions answer.

Asking for a coordinator is also what makes Kafka create its internal topics, so the first user doesn't wait for them.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from twopc.kafka.clients.kafka_python import (
    InitProducerIdRequest,
    KafkaAdminClient,
    KafkaError,
    TransactionalIdNotFoundError,
)
from twopc.testing.broker_settings import INTERNAL_TOPIC_PARTITIONS

_NAME = "twopc-readiness"
#: Names that differ by one in their last letter fall to successive partitions of an internal topic: all are asked.
_PROBES = tuple(f"{_NAME}-{letter}" for letter in "abcdefgh"[:INTERNAL_TOPIC_PARTITIONS])
_TIMEOUT_MS = 2_000


def is_ready(bootstrap_servers: str, brokers: int) -> bool:
    """Ask once; an answer of no comes within a few seconds."""
    if not all(_accepts(server) for server in bootstrap_servers.split(",")):
        return False
    log = logging.getLogger("kafka")
    level = log.level
    # A broker that starts refuses this and that, and the client would report all of it.
    log.setLevel(logging.CRITICAL)
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","),
            client_id=_NAME,
            request_timeout_ms=_TIMEOUT_MS,
            bootstrap_timeout_ms=_TIMEOUT_MS,
        )
        try:
            nodes = [node["broker_id"] for node in admin.describe_cluster()["brokers"]]
            return len(nodes) == brokers and _coordinators_answer(admin) and _producer_ids_at_hand(admin, nodes)
        finally:
            admin.close()
    except KafkaError:
        return False
    finally:
        log.setLevel(level)


def _coordinators_answer(admin: KafkaAdminClient) -> bool:
    admin.describe_groups(list(_PROBES))
    for probe in _PROBES:
        # That nobody has used the name is the answer of a transaction coordinator that has loaded its log.
        with suppress(TransactionalIdNotFoundError):
            admin.describe_transactions([probe])
    return True


def _producer_ids_at_hand(admin: KafkaAdminClient, nodes: Sequence[int]) -> bool:
    # A broker asks the controller for its first block of producer ids when it first needs one, and refuses until then.
    for node in nodes:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_TIMEOUT_MS, producer_id=-1, producer_epoch=-1
        )
        if admin._manager.run(partial(admin._manager.send, request, node_id=node)).error_code != 0:
            return False
    return True


def _accepts(server: str) -> bool:
    host, _, port = server.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
