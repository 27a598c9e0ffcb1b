"""Kafka, read and written exactly once: `KafkaSource` and `KafkaSink`. The only door to both Kafka client libraries."""

from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.start import StartingOffsets

__all__ = ["DeliveryGuarantee", "KafkaSink", "KafkaSource", "StartingOffsets"]
