"""The result of an operator on a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from twopc.column import Over
from twopc.record import Batch, RecordError


class Result(NamedTuple):
    """The number of rows of a batch that an operator has worked on, from the first on, and what it made of them.

    With a `cause`, that was raised on the row behind those, which has made nothing and changed no state, but for what
    was due by its time: whoever goes on does so behind it, with another call. `lost` went wrong beside the rows.
    """

    taken: int
    batch: Batch
    cause: BaseException | None = None
    lost: Sequence[RecordError] = ()


Work = Callable[[Batch, Over], Result]
"""Works on a batch that comes to one input port, up to where `over` stops."""
