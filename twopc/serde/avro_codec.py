"""Columns of Avro by the compiled codec, where it was built; what it does not take goes value by value.

The codec (`_avro.c`) takes what is plain: bytes that are exactly a value, and values of exactly the Python types that
are read; of a union, those whose type says the branch. At anything else it stops, and the types in Python have that
value, or say what is wrong with it: so there is one account of errors, and nothing is read or written here that they
would read or write otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twopc.compiled import AVRO, compiled_in_use
from twopc.serde.avro_type import Type

if TYPE_CHECKING:
    from twopc.serde._avro import Codec


def codec_of(schema: Type) -> Codec | None:
    """Return the codec of a type; None without the module, and for a type that holds a record within itself.

    It is never needed: all goes value by value then, with the same results.
    """
    module = compiled_in_use(AVRO)
    if module is None:
        return None
    plan = schema.plan({})
    if plan is None:
        return None
    try:
        codec: Codec = module.Codec(plan)
    except ValueError:
        return None
    return codec
