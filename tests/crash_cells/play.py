"""From a cell to its scene: the one place that knows which is played for what."""

from __future__ import annotations

from typing import assert_never

from tests.crash_cells.cells import TIMEOUT_MS, Cell
from tests.crash_cells.network_scenes import fall_again, lose_ack_reply, lose_end_txn
from tests.crash_cells.rig import Rig
from tests.crash_cells.scenes import hit_coordinator, hit_driver, hit_worker
from twopc.faults.crash_table import CrashPoint, CrashSite
from twopc.faults.kafka_proxy import KafkaProxy


def play(rig: Rig, cell: Cell, proxy: KafkaProxy) -> None:
    """Run the drill's job through the cell, to its end. `proxy` stands between `drill.bootstrap_servers` and Kafka.

    It is used by cells on the wire only; of those, one may be played at a time.
    """
    match cell.point:
        case CrashPoint.AFTER_ACK:
            lose_ack_reply(rig, cell)
        case CrashPoint.RECOVERY_AGAIN:
            fall_again(rig, cell)
        case CrashPoint.AFTER_END_TXN:
            rig.settings["checkpoint_timeout"] = f"{TIMEOUT_MS}ms"
            hit_worker(rig, cell)
        case _:
            _play_by_place(rig, cell, proxy)


def _play_by_place(rig: Rig, cell: Cell, proxy: KafkaProxy) -> None:
    match cell.point.where:
        case CrashSite.SUBTASK:
            hit_worker(rig, cell)
        case CrashSite.COORDINATOR:
            hit_coordinator(rig, cell)
        case CrashSite.DRIVER:
            hit_driver(rig, cell)
        case CrashSite.BETWEEN:
            lose_end_txn(rig, cell, proxy)
        case where:
            assert_never(where)
