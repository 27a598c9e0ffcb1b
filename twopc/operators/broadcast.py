"""broadcast tables: the latest value of each key of an input, all of it on every subtask, and what joins look up there.

- Nothing of it is in a checkpoint: it is read again at each start, and its memory is that of the process.
- Values are encoded when they come and decoded for each record that meets one: no function sees what another changed.
- Keys are of one form, as those of states are: text meets the same text in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from twopc.column import Over, map_part
from twopc.errors import ConfigurationError
from twopc.operators.bound_state import decoded, encoded
from twopc.operators.functions import Function, function_name, is_asynchronous
from twopc.operators.instance import Instance, OnePortInstance, OperatorContext
from twopc.operators.node import Node, feeding
from twopc.operators.result import Result
from twopc.operators.table import TableJoinStep, TableStep, joined
from twopc.record import Batch
from twopc.state.key_form import key_bytes


@dataclass(frozen=True, slots=True)
class KeepBroadcast(TableStep):
    """the latest value of each key, which joins of every subtask look up; None deletes it"""

    feeds_broadcast = True

    def open(self, context: OperatorContext) -> Instance:
        return context.tables[context.operator_id]

    def __str__(self) -> str:
        return f"table({self.name!r}, broadcast=True)"


@dataclass(frozen=True, slots=True)
class JoinBroadcast(TableJoinStep):
    """(value, what the broadcast table has for its key, or for `key(value)`) -> value"""

    key: Function | None = None

    def __post_init__(self) -> None:
        TableJoinStep.__post_init__(self)
        if self.key is not None and not callable(self.key):
            raise ConfigurationError(f"key of a join is a function of the value, not {type(self.key).__name__}")
        if self.key is not None and is_asynchronous(self.key):
            raise ConfigurationError(f"key of {self} must be a plain function, no coroutine function")

    def open(self, context: OperatorContext) -> Instance:
        return BroadcastJoin(self, context.tables[self.table])

    def __str__(self) -> str:
        key = "" if self.key is None else f", key={function_name(self.key)}"
        return f"join({function_name(self.function)}, how={self.how!r}{key})"


class BroadcastTable(OnePortInstance):
    """One table as one subtask has it. Nothing comes out of it: joins look into it."""

    def __init__(self, step: KeepBroadcast) -> None:
        self._step = step
        self._values: dict[bytes, bytes] = {}

    def process(self, batch: Batch, over: Over) -> Result:
        """Keep the values of the batch, in its order, up to where `over` stops."""
        name, serde = self._step.name, self._step.state
        forms, bad_key = map_part(_form, batch.keys)
        values, cause = map_part(lambda value: encoded(name, serde, value), batch.first(len(forms)).values, over)
        for form, value in zip(forms, values, strict=False):
            if value is None:
                self._values.pop(form, None)
            else:
                self._values[form] = value
        return Result(len(values), batch.first(0), bad_key if len(values) == len(forms) else cause)

    def rows(self, numbers: Collection[int]) -> int:
        return len(self._values)

    def find(self, key: Any) -> Any:
        """Return the value of a key, as the serde gives it back; None where there is none, and for no key."""
        if key is None:
            return None
        return decoded(self._step.name, self._step.state, self._values.get(key_bytes(key)))


class BroadcastJoin(OnePortInstance):
    """The join of a stream with one table of the same subtask."""

    def __init__(self, step: JoinBroadcast, table: BroadcastTable) -> None:
        self._step = step
        self._find = table.find if step.key is None else _found_by(step.key, table)

    def process(self, batch: Batch, over: Over) -> Result:
        """Return what the function makes of each value and of what the table has, up to where `over` stops."""
        subjects = batch.keys if self._step.key is None else batch.values
        return joined(self._step, batch, subjects, self._find, over)


def broadcast_tables(nodes: Sequence[Node]) -> dict[str, BroadcastTable]:
    """Return the tables of a job that are on every subtask, empty, by operator id."""
    return {node.id: BroadcastTable(node.operation) for node in nodes if isinstance(node.operation, KeepBroadcast)}


def feeding_broadcasts(nodes: Sequence[Node]) -> frozenset[str]:
    """Return the operators through which records come to such tables, those themselves among them."""
    return feeding(nodes, (node.id for node in nodes if isinstance(node.operation, KeepBroadcast)))


def _found_by(key: Callable[[Any], Any], table: BroadcastTable) -> Callable[[Any], Any]:
    return lambda value: table.find(key(value))


def _form(key: Any) -> bytes:
    if key is None:
        raise ValueError("the record has no key, and a table keeps its values by key")
    return key_bytes(key)
