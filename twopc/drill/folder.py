"""The folder of one drill; what drills that were killed have left goes with the next, a Kafka of their own included."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from twopc.storage.scratch_folder import scratch_folder
from twopc.testing.local_broker import end_broker_of

KAFKA = "kafka"


def drill_folder(where: Path | None) -> AbstractContextManager[Path]:
    """Return a folder for a drill, deleted at its end; brokers of drills that died are ended with their folders."""
    return scratch_folder("drill", where, before_sweep=lambda folder: end_broker_of(folder / KAFKA))
