"""The formats of keys, values and states, and the base for others."""

from twopc.serde.avro import Avro
from twopc.serde.base import HeaderSerde, Serde, SerdeContext, checked_serde
from twopc.serde.plain import Bytes, Json, String

__all__ = ["Avro", "Bytes", "HeaderSerde", "Json", "Serde", "SerdeContext", "String", "checked_serde"]
