"""The formats of keys, values and states, and the base for others."""

from twopc.serde.avro import Avro
from twopc.serde.base import HeaderSerde, Serde, SerdeContext, checked_serde, checked_state_serde
from twopc.serde.numbers import Double, Float, Int, Long
from twopc.serde.plain import BYTES, Bytes, Json, String
from twopc.serde.protobuf import Protobuf

__all__ = [
    "BYTES",
    "Avro",
    "Bytes",
    "Double",
    "Float",
    "HeaderSerde",
    "Int",
    "Json",
    "Long",
    "Protobuf",
    "Serde",
    "SerdeContext",
    "String",
    "checked_serde",
    "checked_state_serde",
]
