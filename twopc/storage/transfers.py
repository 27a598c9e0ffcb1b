"""Several calls at once, where each waits for a server: in the order of what is given, and never far ahead of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], at_once: int) -> Iterator[Result]:
    """Yield what `work` makes of each item, in their order, while up to `at_once` are in work.

    An item is taken only when there is room for it. After an error none is taken, and those in work end before it is
    raised; so they do where the caller takes no further result.
    """
    if at_once == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(at_once, thread_name_prefix="twopc-transfer") as pool:
        begun: deque[Future[Result]] = deque()
        for item in items:
            begun.append(pool.submit(work, item))
            if len(begun) == at_once:
                yield begun.popleft().result()
        for each in begun:
            yield each.result()
