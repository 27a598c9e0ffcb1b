"""The door of kafka-python: what is used of it. As it is loaded it warns of what it does itself: nobody hears that."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # It reads its schemas by importlib.resources.read_text, deprecated in Python 3.11 and 3.12 only.
    warnings.filterwarnings("ignore", r"(read|open)_text is deprecated", DeprecationWarning)
    from kafka import KafkaAdminClient, errors
    from kafka.admin import ConfigResource
    from kafka.errors import KafkaError, TransactionalIdNotFoundError
    from kafka.net.sasl.oauth import AbstractTokenProvider
    from kafka.partitioner.default import murmur2
    from kafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest, DescribeGroupsRequest
    from kafka.protocol.admin.transactions import DescribeTransactionsRequest
    from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest
    from kafka.protocol.metadata import CoordinatorType, MetadataRequest
    from kafka.protocol.producer.transaction import EndTxnRequest, InitProducerIdRequest, WriteTxnMarkersRequest
    from kafka.structs import TopicPartition as KafkaTopicPartition

__all__ = [
    "AbstractTokenProvider",
    "ConfigResource",
    "CoordinatorType",
    "CreateTopicsRequest",
    "DeleteTopicsRequest",
    "DescribeGroupsRequest",
    "DescribeTransactionsRequest",
    "EndTxnRequest",
    "FetchRequest",
    "InitProducerIdRequest",
    "KafkaAdminClient",
    "KafkaError",
    "KafkaTopicPartition",
    "MetadataRequest",
    "OffsetForLeaderEpochRequest",
    "TransactionalIdNotFoundError",
    "WriteTxnMarkersRequest",
    "errors",
    "murmur2",
]
