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

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from twopc.column import Over, locate, map_part, span
from twopc.errors import UserCodeError
from twopc.operators.steps import KeyedStep, StatefulMap
from twopc.operators.values import Result
from twopc.operators.write_back_cache import WriteBackCache
from twopc.record import Batch, RecordFault, Row
from twopc.serde import Json, Serde
from twopc.state.key_form import key_bytes, need_no_mark
from twopc.termination import TERMINATION

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
"""What JSON's serde takes for an integer: it comes back as it was, so it needs no coding between two calls."""

Run = tuple[int, Sequence[bytes]]


class KeyedOperator:
    """One stateful_map on one subtask."""

    def __init__(self, step: StatefulMap, states: WriteBackCache) -> None:
        self._step = step
        self._states = states
        self._holds_ints = type(step.state) is Json

    def process(self, batch: Batch, over: Over) -> Result:
        """Return the batch with the function's outputs as its values."""
        keys, bad_key = key_forms(self._step, batch)
        batch = batch.first(len(keys))
        runs = list(partition_runs(batch.rows, keys))
        for partition, some in runs:
            self._states.fetch(partition, some)
        outputs: list[Any] = []
        cause: BaseException | None = None
        rest = over(batch.values)
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
        return Result(len(outputs), batch.first(len(outputs)).with_values(outputs), cause)

    def side_output(self, name: str) -> Batch:
        """A stateful_map has none."""
        raise AssertionError(f"{self._step} has no output {name!r}")

    def write_back(self) -> None:
        """Bring the store up to every batch so far."""
        self._states.write_back()

    def _apply(self, run: Run, values: Iterator[Any], outputs: list[Any]) -> None:
        """Call the function for each key of the run and the next value; keep the states that it leaves behind."""
        partition, keys = run
        function, serde, holds_ints = self._step.function, self._step.state, self._holds_ints
        states, dirty = self._states.of(partition)
        size_bytes = 0
        held: Any = None
        try:
            # The keys come first: the other way round one value more would be taken.
            for key, value in zip(keys, values, strict=False):
                held = states[key]
                if type(held) is bytes:
                    size_bytes -= len(held)
                    state = int(held) if holds_ints and held.isdigit() else _decoded(serde, held)
                else:
                    state = held
                result = function(state, value)
                if not isinstance(result, tuple) or len(result) != 2:
                    raise TypeError(f"the function must return a pair (new state, value), not {type(result).__name__}")
                new, output = result
                if holds_ints and type(new) is int and _INT_MIN <= new <= _INT_MAX:
                    same = new == state and type(state) is int
                else:
                    new = _encoded(serde, new)
                    size_bytes += 0 if new is None else len(new)
                    same = new == held
                states[key] = new
                if not same:
                    dirty[key] = new
                outputs.append(output)
        except BaseException:
            size_bytes += len(held) if type(held) is bytes else 0
            raise
        finally:
            self._states.grew(size_bytes)


def key_forms(step: KeyedStep, batch: Batch) -> tuple[list[bytes], BaseException | None]:
    """Return the forms of the keys up to the first that can have no state, and what is wrong with that."""
    keys = batch.keys
    kinds = set(map(type, keys))
    if kinds == {bytes} and need_no_mark(keys):
        return keys, None
    if {bytes, str} <= kinds:
        raise UserCodeError(
            f"records {span(batch.rows)} have keys of bytes and of text, and {step} would take b'a' and 'a' "
            "for one key: use a serde whose keys are of one kind"
        )
    forms, cause = map_part(key_bytes, keys[: keys.index(None)] if None in keys else keys)
    if cause is None and len(forms) < len(keys):
        error = UserCodeError(
            f"record {locate(batch.rows[len(forms)])} has no key, and {step} keeps its state by key: "
            "drop those without, with filter_records, or let whoever writes the input give each record one"
        )
        cause = RecordFault(error)
    return forms, cause


def partition_runs(rows: Sequence[Row], keys: list[bytes]) -> Iterator[Run]:
    """Split the keys where the number changes; rows come from a source in long runs of one partition."""
    start = 0
    for partition, group in groupby([row.partition() for row in rows]):
        end = start + sum(1 for _ in group)
        yield partition or 0, keys if end - start == len(keys) else keys[start:end]
        start = end


def _decoded(serde: Serde, data: bytes) -> Any:
    try:
        return serde.deserialize(data)
    except Exception as error:
        raise ValueError(f"the stored state can't be decoded by {serde}: {error}") from error


def _encoded(serde: Serde, state: Any) -> bytes | None:
    try:
        return None if state is None else serde.serialize(state)
    except Exception as error:
        raise ValueError(f"the new state can't be encoded by {serde}: {error}") from error
