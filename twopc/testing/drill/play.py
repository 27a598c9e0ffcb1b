"""From a cell to its scene: the one place that knows which is played for what."""

from __future__ import annotations

from typing import assert_never

from twopc.faults.crash_table import CrashPoint, Where
from twopc.testing.drill.cells import TIMEOUT_MS, Cell
from twopc.testing.drill.drill import Drill
from twopc.testing.drill.scenes import hit_coordinator, hit_driver, hit_worker
from twopc.testing.drill.wire_scenes import fall_again, lose_ack_reply, lose_end_txn
from twopc.testing.kafka_proxy import KafkaProxy


def play(drill: Drill, cell: Cell, proxy: KafkaProxy) -> None:
    """Run the drill's job through the cell, to its end. `proxy` stands between `drill.bootstrap_servers` and Kafka.

    It is used by cells on the wire only; of those, one may be played at a time.
    """
    match cell.point:
        case CrashPoint.AFTER_ACK:
            lose_ack_reply(drill, cell)
        case CrashPoint.RECOVERY_AGAIN:
            fall_again(drill, cell)
        case CrashPoint.AFTER_END_TXN:
            drill.settings["checkpoint_timeout"] = f"{TIMEOUT_MS}ms"
            hit_worker(drill, cell)
        case _:
            _play_by_place(drill, cell, proxy)


def _play_by_place(drill: Drill, cell: Cell, proxy: KafkaProxy) -> None:
    match cell.point.where:
        case Where.SUBTASK:
            hit_worker(drill, cell)
        case Where.COORDINATOR:
            hit_coordinator(drill, cell)
        case Where.DRIVER:
            hit_driver(drill, cell)
        case Where.BETWEEN:
            lose_end_txn(drill, cell, proxy)
        case where:
            assert_never(where)
