"""49 crash points, three signals each: real processes and broker, 6,000 records, all invariants judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash_cells.cells import CELLS, OF_OTHER_SINKS, OF_SMALL_STATE, ON_THE_WIRE, Cell
from tests.crash_cells.judge import judge
from tests.crash_cells.play import play
from tests.crash_cells.rig import Rig
from tests.crash_cells.tiered import tiered
from twopc.faults.kafka_proxy import KafkaProxy
from twopc.faults.points import REACHED_VARIABLE, points_reached
from twopc.testing.local_broker import LocalBroker

pytestmark = pytest.mark.drill


@pytest.fixture
def reached_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where every process of the cell notes the crash points that it came to."""
    folder = tmp_path / "crash-points-reached"
    folder.mkdir()
    monkeypatch.setenv(REACHED_VARIABLE, str(folder))
    return folder


@pytest.mark.parametrize("cell", tiered(CELLS))
def test_nothing_is_lost_doubled_or_left_behind(
    cell: Cell, broker: LocalBroker, proxy: KafkaProxy, rig: Rig, reached_folder: Path
) -> None:
    if cell.point in ON_THE_WIRE:
        rig.bootstrap_servers = broker.proxied_servers
    if cell.point in OF_OTHER_SINKS:
        rig.add_table()
    if cell.with_every_operator:
        rig.add_every_operator()
    play_and_judge(cell, proxy, rig)
    assert cell.point in points_reached(reached_folder)
    assert rig.table.exists() == (cell.point in OF_OTHER_SINKS)


@pytest.mark.proof
@pytest.mark.parametrize("cell", OF_SMALL_STATE, ids=str)
def test_nor_where_the_state_stands_in_the_metadata(
    cell: Cell, proxy: KafkaProxy, rig: Rig, reached_folder: Path
) -> None:
    rig.settings["checkpoint_inline_bytes"] = "20480"
    play_and_judge(cell, proxy, rig)
    assert cell.point in points_reached(reached_folder)
    assert [path.name for path in rig.checkpoint_dir.glob("*/chk-*/*")].count("metadata.json") > 0
    assert list(rig.checkpoint_dir.glob("*/chk-*/subtask-*")) == []


def play_and_judge(cell: Cell, proxy: KafkaProxy, rig: Rig) -> None:
    """Play it, and judge what came of it; what every process said goes with a failure."""
    try:
        play(rig, cell, proxy)
    except BaseException as error:
        error.add_note("\n".join(rig.logs()))
        raise
    assert judge(rig) == []
