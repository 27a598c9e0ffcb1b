"""The operators of the steps that keep state by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from twopc.operators.keyed import KeyedOperator
from twopc.operators.process import ProcessOperator
from twopc.operators.steps import KeepTable, KeyedStep, Process, StatefulMap
from twopc.operators.table import TableOperator
from twopc.operators.time_bound import Latest
from twopc.operators.window_step import WindowAggregate
from twopc.operators.windows import WindowOperator
from twopc.operators.write_back_cache import KeyedStateStore, WriteBackCache
from twopc.port import Port
from twopc.state.layout import StateName


def keyed_operator(
    operator: str, step: KeyedStep, store: KeyedStateStore, sharers: int, used: Iterable[Port], latest: Latest
) -> KeyedOperator | ProcessOperator | TableOperator | WindowOperator:
    """Return the operator of one subtask; `sharers` share its memory, and `used` are the ports that go somewhere.

    Records move stream time to the time that `latest` says, and no further.
    """
    match step:
        case Process():
            return ProcessOperator(operator, step, store, sharers, latest)
        case KeepTable():
            return TableOperator(step, WriteBackCache(StateName(operator, step.name), store, sharers))
        case StatefulMap():
            return KeyedOperator(step, WriteBackCache(StateName(operator, step.name), store, sharers))
        case WindowAggregate():
            outputs = {port.output for port in used if port.operator == operator}
            return WindowOperator(operator, step, store, sharers, outputs, latest)
        case _:
            assert_never(step)
