"""The loops of keyed operators over the records of a batch: compiled, where that was built, and the same in Python.

`TWOPC_NATIVE=0` in the environment turns the compiled part off, as that of `twopc.kafka`. Whatever is not plain there,
a state that has to be decoded or encoded or a result that is no pair, is given to functions in Python: so there is one
account of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Protocol, cast

from twopc.compiled import LOOPS, compiled_in_use
from twopc.state.key_form import need_no_mark

_LEAST, _MOST = -(2**63), 2**63 - 1
"""The least and the greatest state that is held as an integer; others are held as they are stored."""


class Loops(Protocol):
    """The loops; lists are lists and dicts dicts, and nothing else."""

    def apply(
        self,
        function: Callable[[Any, Any], Any],
        decode: Callable[[bytes], Any],
        encode: Callable[[Any], bytes | None],
        pair_of: Callable[[Any], tuple[Any, Any]],
        holds_ints: bool,
        keys: list[bytes],
        values: Iterator[Any],
        states: dict[bytes, Any],
        dirty: dict[bytes, Any],
        outputs: list[Any],
        /,
    ) -> None:
        """Call the function with the state of each key and the next value, until one of both ends.

        The state that it leaves behind goes into `states`, into `dirty` too where it is another one, and its output
        behind the others. An error leaves what came before it: its record has no output, and has changed nothing.
        """

    def are_forms(self, keys: list[Any], /) -> bool:
        """Whether there are keys, and all are bytes that are their own forms (`twopc.state.key_form`)."""

    def run_ends(self, numbers: list[int], /) -> list[int]:
        """Return behind which elements another number begins, or none."""


class InPython:
    """The loops without the compiled part."""

    def apply(
        self,
        function: Callable[[Any, Any], Any],
        decode: Callable[[bytes], Any],
        encode: Callable[[Any], bytes | None],
        pair_of: Callable[[Any], tuple[Any, Any]],
        holds_ints: bool,
        keys: list[bytes],
        values: Iterator[Any],
        states: dict[bytes, Any],
        dirty: dict[bytes, Any],
        outputs: list[Any],
        /,
    ) -> None:
        # The keys come first: the other way round one value more would be taken.
        for key, value in zip(keys, values, strict=False):
            held = states.get(key)
            state = decode(held) if type(held) is bytes else held
            result = function(state, value)
            new, output = result if type(result) is tuple and len(result) == 2 else pair_of(result)
            if holds_ints and type(new) is int and _LEAST <= new <= _MOST:
                is_same = new == state and type(state) is int
            else:
                new = encode(new)
                is_same = new == held
            states[key] = new
            if not is_same:
                dirty[key] = new
            outputs.append(output)

    def are_forms(self, keys: list[Any], /) -> bool:
        return set(map(type, keys)) == {bytes} and need_no_mark(keys)

    def run_ends(self, numbers: list[int], /) -> list[int]:
        ends: list[int] = []
        for _, run in groupby(numbers):
            ends.append((ends[-1] if ends else 0) + sum(1 for _ in run))
        return ends


def loops() -> Loops:
    """Return the way that is in use."""
    module = compiled_in_use(LOOPS)
    return _IN_PYTHON if module is None else cast("Loops", module)


_IN_PYTHON = InPython()
