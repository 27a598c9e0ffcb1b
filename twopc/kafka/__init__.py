"""Kafka, read and written exactly once: `KafkaSource` and `KafkaSink`. The only door to both Kafka client libraries.

It imports nothing here, so that its pure modules load without a client library.
"""
