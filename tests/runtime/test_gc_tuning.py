from __future__ import annotations

import gc

from twopc.runtime.gc_tuning import YOUNG_MAX, collected_seldom


class Cycle:
    def __init__(self) -> None:
        self.me = self


def test_a_subtask_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    with collected_seldom():
        assert gc.get_threshold()[0] == YOUNG_MAX
    assert gc.get_threshold() == before


def test_cycles_that_a_function_leaves_behind_are_still_found() -> None:
    with collected_seldom():
        for _ in range(2 * YOUNG_MAX):
            Cycle()
        assert sum(type(found) is Cycle for found in gc.get_objects()) <= YOUNG_MAX
