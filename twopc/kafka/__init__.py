"""Kafka, read and written exactly once: `KafkaSource` and `KafkaSink`. The only door to both Kafka client libraries.

Users meet the modules here. Below them, each room on the next: `transactions`; `input` and `output`; `topics`;
`positions`; `clients`. `native` is the compiled part, `registry` what schemas are kept in.

It imports nothing here, so that its pure modules load without a client library.
"""
