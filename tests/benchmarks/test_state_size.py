"""What a checkpoint asks of its store, as docs/storage.md says: requests cost money, and time far from the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from state_size import measure

from twopc.storage.memory import MemoryStore


@pytest.mark.parametrize(
    ("megabytes", "changed", "asked"),
    [(0, 10, (4, 6, 1)), (10, 100, (6, 9, 3))],
    ids=["in the metadata", "with files"],
)
def test_a_checkpoint_asks_for_so_many_puts_reads_and_deletions(
    megabytes: int, changed: int, asked: tuple[int, int, int], tmp_path: Path
) -> None:
    cost = measure(megabytes, changed, 3, tmp_path, MemoryStore())
    assert (cost.puts, cost.reads, cost.deletions) == asked


def test_what_a_checkpoint_stores_follows_what_changed_and_not_what_there_is(tmp_path: Path) -> None:
    cost = measure(10, 100, 3, tmp_path, MemoryStore())
    assert cost.snapshot_mb > 9
    assert cost.new_mb < 0.2
