from collections.abc import Callable, Iterator
from typing import Any

def apply(
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
) -> None: ...
def are_forms(keys: list[Any], /) -> bool: ...
def run_ends(numbers: list[int], /) -> list[int]: ...
