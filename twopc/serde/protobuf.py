"""Protocol Buffers, by a generated class and without a registry."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import DecodeError, EncodeError, Message

from twopc.errors import ConfigurationError
from twopc.serde.base import Serde

Shape = Mapping[str, Mapping[str, str]]
"""By the full name of a message or an enum: what stands for each number, in words."""


class Protobuf(Serde):
    """Messages of one class, as a `_pb2` module has it, in their binary form.

    The class travels to subtasks by its name, so its module must be one that they can import: beside the job file, or
    installed. Bytes of another message may well be read as this one, as far as Protocol Buffers can tell.
    """

    def __init__(self, message: type[Message]) -> None:
        if not (isinstance(message, type) and issubclass(message, Message)):
            raise ConfigurationError(f"Protobuf must be given a message class of a _pb2 module, not {message!r}")
        try:
            known = _imported(message.__module__, message.__qualname__)
        except (ImportError, AttributeError, ValueError):
            known = None
        if known is not message:
            raise ConfigurationError(
                f"{message.__qualname__} given to Protobuf can't be imported from {message.__module__!r}, as every "
                "subtask has to: generate its module with protoc, and put it beside the job file"
            )
        self.message = message

    def deserialize(self, data: bytes | None) -> Message | None:
        if data is None:
            return None
        try:
            message: Message = self.message.FromString(data)
        except DecodeError as error:
            raise ValueError(f"these bytes are no {self._name}: {error}") from error
        return message

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, self.message):
            raise TypeError(f"the serde is {self}, so a value must be {self._name} or None, not {type(value).__name__}")
        try:
            return bytes(value.SerializeToString(deterministic=True))
        except EncodeError as error:
            missing = ", ".join(value.FindInitializationErrors())
            raise ValueError(f"{self._name} lacks what it requires: {missing or error}") from error

    @property
    def shape(self) -> Shape:
        """What its messages are made of."""
        return _shape(self.message.DESCRIPTOR)

    def difference(self, written: Shape) -> str | None:
        """Say which number of what another wrote would be read as another field; None where none would.

        A field that is there no more, and one that is new, is read as Protocol Buffers have it.
        """
        declared = self.shape
        for name in sorted(written.keys() & declared.keys()):
            for number in sorted(written[name].keys() & declared[name].keys(), key=int):
                was, now = written[name][number], declared[name][number]
                if was != now:
                    return f"{number} in {name} was {was}, and is {now}"
        return None

    @property
    def _name(self) -> str:
        return str(self.message.DESCRIPTOR.full_name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _protobuf, (self.message.__module__, self.message.__qualname__)

    def __repr__(self) -> str:
        return f"Protobuf({self._name})"


def _protobuf(module: str, name: str) -> Protobuf:
    return Protobuf(_imported(module, name))


def _imported(module: str, name: str) -> Any:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _shape(message: Descriptor) -> Shape:
    """Return the shape of a message and of all that it is made of."""
    found: dict[str, dict[str, str]] = {}
    waiting: list[Descriptor | EnumDescriptor] = [message]
    while waiting:
        each = waiting.pop()
        if each.full_name in found:
            continue
        if isinstance(each, EnumDescriptor):
            found[each.full_name] = {str(value.number): value.name for value in each.values}
            continue
        definition = DescriptorProto()
        each.CopyToProto(definition)
        found[each.full_name] = {str(field.number): _words(field) for field in definition.field}
        waiting += [of for field in each.fields if (of := field.message_type or field.enum_type) is not None]
    return found


def _words(field: FieldDescriptorProto) -> str:
    kind = field.type_name.lstrip(".") or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    return f"{'repeated ' if field.label == FieldDescriptorProto.LABEL_REPEATED else ''}{kind} {field.name}"
