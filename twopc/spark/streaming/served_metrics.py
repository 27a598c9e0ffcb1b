"""The metrics of a streaming query's batches, served while its driver lives."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from twopc.metrics.pages import MetricsPages
from twopc.metrics.queries import QueryHealth, QueryMetrics
from twopc.sink import Outcome, Settled
from twopc.spark.streaming.observer import Observer
from twopc.spark.streaming.steps import AbortRun, AbortWritten, Decide, Drain, End, ListOpen, Look, Step, Write
from twopc.web.door import Door
from twopc.web.server import WebServer

log = logging.getLogger(__name__)


class ServedMetrics(Observer):
    """Counts, and serves what it has counted until it is closed; raises ConfigurationError if it can't listen there."""

    def __init__(self, query: str, host: str, port: int) -> None:
        self._metrics = QueryMetrics(query)
        self._health = QueryHealth()
        self._closing = ExitStack()
        pages = MetricsPages(self._metrics.registry, self._health)
        server = self._closing.enter_context(WebServer("metrics", Door(host), port, [pages]))
        self.address = server.address
        log.info("metrics of query %s are at %s/metrics", query, self.address)

    def carried_out(self, step: Step, answer: Any, seconds: float) -> None:
        metrics = self._metrics
        match step:
            case Write():
                metrics.write.observe(seconds)
                metrics.records.inc(answer.records)
                metrics.size.inc(answer.size)
                metrics.are_pending(len(answer.transactions))
            case Drain():
                metrics.replayed.inc()
            case Decide():
                metrics.decision.observe(seconds)
            case Look():
                metrics.lost.inc(_count(answer, Outcome.LOST))
                metrics.are_pending(_count(answer, Outcome.HELD))
            case End(_, commit):
                metrics.are_pending(_count(answer, Outcome.HELD))
                if commit:
                    metrics.commit.observe(seconds)
            case AbortWritten() | AbortRun():
                metrics.are_pending(0)
            case ListOpen() if answer:
                # What the batch has written is open: where the answer is empty, nobody was asked.
                metrics.open.set(len(answer))
            case _:
                pass

    def committed(self, batch: int) -> None:
        self._metrics.committed(batch)
        self._health.wrong = ""

    def failed(self) -> None:
        self._health.wrong = "the last batch failed"

    def close(self) -> None:
        self._closing.close()


def _count(settled: Sequence[Settled], outcome: Outcome) -> int:
    return sum(settlement.outcome is outcome for settlement in settled)
