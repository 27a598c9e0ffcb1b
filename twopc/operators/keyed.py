"""stateful_map: a function with a state for each key, kept by the number of the partition that the key was read from.

- A batch reads each of its keys at most once and writes each of them at most once; a key that comes again soon does
  neither (`twopc.operators.write_back_cache`). What changed is in the store after `write_back`, which comes before
  every snapshot.
- Within a key, records are seen in the order of their partition; those of different inputs in any.
- The function sees every state as its serde gives it back, also within a batch: outputs don't depend on where a batch
  ended, and a state that the function goes on changing doesn't change an output that shares it.
- Partitions of one number share their states, whatever inputs they are of; others never do, even for equal keys: that
  is what lets state move with its number.
- A record on which the function raises has changed no state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from twopc.column import Over, locate, map_part
from twopc.column_rows import partitions_of
from twopc.errors import UserCodeError
from twopc.operators.function_step import FunctionStep
from twopc.operators.functions import function_name
from twopc.operators.instance import Instance, OnePortInstance, OperatorContext
from twopc.operators.loops import loops
from twopc.operators.result import Result
from twopc.operators.step import Step
from twopc.operators.write_back_cache import WriteBackCache
from twopc.protocol.ids import checked_name
from twopc.record import Batch, RecordFault, Row
from twopc.serde import Json, Serde, checked_state_serde
from twopc.state.key_form import key_bytes
from twopc.termination import TERMINATION

Run = tuple[int, list[bytes]]


@dataclass(frozen=True, slots=True)
class StatefulStep(FunctionStep):
    """A step with a function that is given the state of the key, and leaves another behind."""

    name: str
    state: Serde
    by_key = keys_apart = True
    sees_time = False

    def __post_init__(self) -> None:
        FunctionStep.__post_init__(self)
        checked_name(f"the name of a {self.operator}", self.name)
        checked_state_serde(f"state of {self}", self.state)

    @property
    def states(self) -> dict[str, Serde]:
        """The serde of each state, by name."""
        return {self.name: self.state}

    @property
    def state_name(self) -> str:
        return self.name

    @property
    def called(self) -> Callable[[Any, Any], tuple[Any, Any]]:
        """The function as it is called for each element."""
        return self.function

    def __str__(self) -> str:
        return f"{self.operator}({function_name(self.function)}, name={self.name!r})"


@dataclass(frozen=True, slots=True)
class StatefulMap(StatefulStep):
    """(state of the key or None, value) -> (new state or None to forget the key, value)"""

    keeps_key = True

    def open(self, context: OperatorContext) -> Instance:
        return KeyedOperator(self, context.cache(self.name))


class KeyedOperator(OnePortInstance):
    """One such step on one subtask."""

    def __init__(self, step: StatefulStep, states: WriteBackCache) -> None:
        self._function = step.called
        self._states = states
        self._key_forms = KeyForms(step)
        self._coding = _Coding(step.state)

    def process(self, batch: Batch, over: Over) -> Result:
        """Return what the function makes of the batch."""
        keys, bad_key = self._key_forms.of(batch)
        batch = batch.first(len(keys))
        runs = list(partition_runs(batch.rows, keys))
        for partition, some in runs:
            self._states.fetch(partition, some)
        outputs: list[Any] = []
        cause: BaseException | None = None
        rest = over(self._column(batch))
        try:
            for run in runs:
                self._apply(run, rest, outputs)
        except TERMINATION:
            raise
        except BaseException as error:  # noqa: BLE001 - it is an error of the record in hand
            cause = error
        self._states.settle()
        if len(outputs) == len(keys):
            cause = bad_key
        return self._result(batch.first(len(outputs)), outputs, cause)

    def _column(self, batch: Batch) -> list[Any]:
        """Return what the function is called with."""
        return batch.values

    def _result(self, batch: Batch, outputs: list[Any], cause: BaseException | None) -> Result:
        """Return what comes of a batch of which these are the outputs."""
        return Result(len(outputs), batch.with_values(outputs), cause)

    def write_back(self) -> None:
        self._states.write_back()

    def _apply(self, run: Run, values: Iterator[Any], outputs: list[Any]) -> None:
        """Call the function for each key of the run and the next value; keep the states that it leaves behind."""
        partition, keys = run
        coding, before = self._coding, len(outputs)
        states, dirty = self._states.of(partition)
        coding.size_bytes = 0
        try:
            loops().apply(
                self._function,
                coding.decode,
                coding.encode,
                pair_of,
                coding.holds_ints,
                keys,
                values,
                states,
                dirty,
                outputs,
            )
        except BaseException:
            # The state was taken out for its call, and is where it was.
            for held in map(states.get, keys[len(outputs) - before :][:1]):
                coding.size_bytes += len(held) if type(held) is bytes else 0
            raise
        finally:
            self._states.grew(coding.size_bytes)


class _Coding:
    """States between calls of the function: at hand as the store has them, but for an integer of JSON.

    `size_bytes` is how much more the encoded ones take than those that were decoded.
    """

    def __init__(self, serde: Serde) -> None:
        self._serde = serde
        self.holds_ints = type(serde) is Json
        self.size_bytes = 0

    def decode(self, held: bytes) -> Any:
        self.size_bytes -= len(held)
        if self.holds_ints and held.isdigit():
            return int(held)
        try:
            return self._serde.deserialize(held)
        except Exception as error:
            raise ValueError(f"the stored state can't be decoded by {self._serde}: {error}") from error

    def encode(self, state: Any) -> bytes | None:
        if state is None:
            return None
        try:
            data = self._serde.serialize(state)
        except Exception as error:
            raise ValueError(f"the new state can't be encoded by {self._serde}: {error}") from error
        self.size_bytes += 0 if data is None else len(data)
        return data


def pair_of(result: Any) -> tuple[Any, Any]:
    """Return what the function returned, where it is a pair of another type than a plain tuple."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"the function must return a pair (new state, value), not {type(result).__name__}")
    new, output = result
    return new, output


class KeyForms:
    """The forms of the keys that come to one operator. A record without a key can have no state."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def of(self, batch: Batch) -> tuple[list[bytes], BaseException | None]:
        """Return the forms of the keys up to the first that can have no state, and what is wrong with that."""
        keys = batch.keys
        if loops().are_forms(keys):
            return keys, None
        has_all = type(None) not in set(map(type, keys))
        forms, cause = map_part(key_bytes, keys if has_all else list(takewhile(lambda key: key is not None, keys)))
        if cause is None and len(forms) < len(keys):
            cause = RecordFault(UserCodeError(self._no_key(batch.rows[len(forms)])))
        return forms, cause

    def _no_key(self, row: Row) -> str:
        return (
            f"record {locate(row)} has no key, and {self._step} keeps its state by key: "
            "drop those without, with filter_records, or let whoever writes the input give each record one"
        )


def partition_runs(rows: Sequence[Row], keys: list[bytes]) -> Iterator[Run]:
    """Split the keys where the number changes; rows come from a source in long runs of one partition."""
    numbers = partitions_of(rows)
    start = 0
    for end in loops().run_ends(numbers):
        yield numbers[start], keys if end - start == len(keys) else keys[start:end]
        start = end
