"""One stored value with its address, decoded where its serde is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twopc.errors import UserCodeError
from twopc.protocol.ids import SubtaskIndex
from twopc.serde import Serde
from twopc.state.key_form import key_of
from twopc.state.layout import StateName


@dataclass(frozen=True, slots=True)
class StateEntry:
    """The state of one key, under the number of the partition that the key was read from, as one subtask stored it.

    An operator's own state, of which a subtask has one, has no partition and an empty key. `stored_key` is the form of
    the key in the state (`twopc.state.key_form`). `serde` is None where neither the checkpoint nor the caller said how
    the state is encoded.
    """

    state: StateName
    subtask: SubtaskIndex
    partition: int | None
    stored_key: bytes
    raw: bytes
    serde: Serde | None = None

    @property
    def key(self) -> Any:
        """The key as the job has it: bytes, as which text comes back too, or else a value of JSON."""
        return key_of(self.stored_key)

    @property
    def key_text(self) -> str | None:
        """The key as text; None if it is neither text nor bytes that are UTF-8."""
        try:
            return self.stored_key.decode()
        except UnicodeDecodeError:
            return None

    @property
    def value(self) -> Any:
        """The decoded value, the stored bytes where no serde is known; raises UserCodeError if the serde refuses."""
        if self.serde is None:
            return self.raw
        try:
            return self.serde.deserialize(self.raw)
        except Exception as error:
            raise UserCodeError(
                f"{self.address} can't be decoded by {self.serde}: {error}; was it written with another serde?"
            ) from error

    @property
    def address(self) -> str:
        """The address, for messages."""
        if self.partition is None:
            return f"operator state {str(self.state)!r} of subtask {self.subtask}"
        return f"state {str(self.state)!r} of key {self.key!r} in partition {self.partition}"
