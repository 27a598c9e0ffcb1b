"""Protocol Buffers, by a generated class and without a registry."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from google.protobuf.message import DecodeError, EncodeError, Message

from twopc.errors import ConfigurationError
from twopc.serde.base import Serde


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
