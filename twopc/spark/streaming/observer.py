"""Observers of every step of a batch that was carried out."""

from __future__ import annotations

from typing import Any

from twopc.spark.streaming.steps import Step


class Observer:
    """Hears nothing, as it stands. Called by the thread that carries steps out."""

    def carried_out(self, step: Step, answer: Any, seconds: float) -> None:
        """Hear of a step, of its answer, and how long it took."""

    def committed(self, batch: int) -> None:
        """Hear that a batch is done."""

    def failed(self) -> None:
        """Hear that a batch is not."""

    def close(self) -> None:
        """Let go of everything."""
