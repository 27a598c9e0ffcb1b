"""Confluent's schema registry: serdes whose schemas it keeps.

`SchemaRegistry` describes a registry and makes serdes; a serde's `open` is what connects. Only `client` knows
`confluent_kafka.schema_registry`; bytes are made and read by the serdes that need no registry, under its ids.
"""
