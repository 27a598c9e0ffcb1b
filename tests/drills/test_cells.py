"""44 crash points, three signals each: real processes, a real broker, 10,000 records, and all invariants judged.

The cells that were chosen are played three at a time in the background, as most of a cell is waiting; each test waits
for its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from twopc.crashpoints import CrashPoint, points_reached
from twopc.testing.drill import Drill, judge
from twopc.testing.drill.cells import CELLS, ON_THE_WIRE, Cell
from twopc.testing.drill.drill import load_input
from twopc.testing.drill.play import play
from twopc.testing.kafka_proxy import KafkaProxy
from twopc.testing.local_broker import LocalBroker

# Of a test's time, most is waiting for the cells that are played before its own.
pytestmark = [pytest.mark.drill, pytest.mark.timeout(1_800)]

AT_ONCE = 3

Played = dict[Cell, "Future[list[str]]"]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest,
    broker: LocalBroker,
    proxy: KafkaProxy,
    reached_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Played]:
    """The verdict on each chosen cell, some time."""
    name = f"cells-{uuid.uuid4().hex[:6]}"
    load_input(broker.bootstrap_servers, f"{name}-in")

    def verdict(cell: Cell) -> list[str]:
        servers = broker.proxied_servers if cell.point in ON_THE_WIRE else broker.bootstrap_servers
        number = CELLS.index(cell)
        drill = Drill(servers, tmp_path_factory.mktemp(f"cell-{number}-"), f"{name}-{number}", f"{name}-in")
        drill.create_output()
        try:
            play(drill, cell, proxy)
        except BaseException as error:
            error.add_note("\n".join(drill.logs()))
            raise
        return judge(drill)

    with ThreadPoolExecutor(AT_ONCE) as pool, ThreadPoolExecutor(1) as one_on_the_wire:
        chosen = [cell for item in request.session.items if (cell := _cell_of(item)) is not None]
        yield {cell: (one_on_the_wire if cell.point in ON_THE_WIRE else pool).submit(verdict, cell) for cell in chosen}
        for executor in (pool, one_on_the_wire):
            executor.shutdown(cancel_futures=True)


def _cell_of(item: pytest.Item) -> Cell | None:
    callspec = getattr(item, "callspec", None)
    cell = callspec.params.get("cell") if callspec is not None else None
    return cell if isinstance(cell, Cell) else None


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_nothing_is_lost_doubled_or_left_behind(cell: Cell, played: Played) -> None:
    assert played[cell].result() == []


def test_every_crash_point_was_reached(played: Played, reached_folder: Path) -> None:
    for verdict in played.values():
        verdict.exception()
    missing = {cell.point for cell in played or ()} - points_reached(reached_folder)
    assert {point.name for point in missing} == set()
    if len(played) == len(CELLS):
        assert points_reached(reached_folder) == set(CrashPoint)
