"""The figures that subtasks count, each declared here once: for people and monitoring, never for a decision. Pure.

Whoever counts one gives its samples (`Figure.of`, `twopc.runtime.figures`). All that follows goes by this table: the
wire, what the coordinator takes in of them, `twopc jobs show -o json`, and the metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

OPERATOR = "operator_name"


@dataclass(frozen=True, slots=True)
class FigureSample:
    """One value of a figure, and what it is of: a value for each of the figure's labels."""

    AS_LIST: ClassVar[bool] = True

    labels: tuple[str, ...]
    value: int


Figures = Mapping[str, tuple[FigureSample, ...]]
"""The samples of figures, by their names; of this attempt. What is not known is left out."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a subtask. `name` is its metric's, Flink's where Flink has one; `labels` say what a value is of.

    One that is no counter is a gauge. Values are whole numbers; `scale` of them are one of the metric's unit.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    is_counter: bool = False
    scale: int = 1

    def of(self, values: Iterable[tuple[tuple[str, ...], int | None]]) -> tuple[str, tuple[FigureSample, ...]]:
        """Return the entry of `Figures` with these values by labels, those that are known."""
        return self.name, tuple(FigureSample(labels, value) for labels, value in values if value is not None)

    def values_in(self, figures: Figures) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield what `of` was given."""
        return ((sample.labels, sample.value) for sample in figures.get(self.name, ()))

    def by_operator(self, values: Mapping[str, int]) -> tuple[str, tuple[FigureSample, ...]]:
        """Return the same of values by operator."""
        return self.of(((operator,), value) for operator, value in values.items())


def updated(before: Figures | None, told: Figures | None) -> Figures | None:
    """Return the figures that hold when a report tells some anew."""
    return told if before is None else {**before, **(told or {})}


def _by_operator(name: str, help: str) -> Figure:  # noqa: A002
    return Figure(f"operator_{name}", help, (OPERATOR,), is_counter=True)


RECORDS_IN = _by_operator("num_records_in", "Records that a source has read in this attempt.")
RECORDS_OUT = _by_operator("num_records_out", "Records that a sink was given in this attempt.")
BYTES_IN = _by_operator("num_bytes_in", "Bytes of the values that a source has read in this attempt.")
BYTES_OUT = _by_operator("num_bytes_out", "Bytes of the values that a sink has written in this attempt.")
LATE_RECORDS = _by_operator(
    "num_late_records", "Records that came too late for every window that they belong to, in this attempt."
)
OPEN_WINDOWS = Figure("operator_open_windows", "Windows that are open.", (OPERATOR,))
TABLE_ROWS = Figure("operator_table_rows", "Rows of a table.", (OPERATOR,))
RECORDS_SKIPPED = Figure(
    "source_num_records_skipped", "Records that went wrong and were left out.", ("source", OPERATOR), is_counter=True
)
DEAD_LETTERS = Figure(
    "source_num_dead_letters", "Records that went wrong and are dead letters.", ("source", OPERATOR), is_counter=True
)
STREAM_TIME = Figure(
    "operator_current_input_watermark_timestamp_seconds",
    "The stream time of an operator, by partition number.",
    (OPERATOR, "partition"),
    scale=1_000,
)
OLDEST_TRANSACTION = Figure(
    "subtask_oldest_transaction_start_timestamp_seconds",
    "When the oldest transaction of a subtask began that is open or pre-committed.",
    scale=1_000,
)
BUSY_TIME = Figure(
    "subtask_accumulate_busy_time_seconds",
    "How long records were decoded, put through the functions and written, in this attempt: of one thread.",
    is_counter=True,
    scale=1_000,
)
OPERATOR_BUSY_TIME = Figure(
    "operator_accumulate_busy_time_seconds",
    "How long an operator worked on records, in this attempt: its user functions, and what it does around them.",
    (OPERATOR,),
    is_counter=True,
    scale=1_000,
)
BATCH_RECORDS = Figure("subtask_batch_records", "The most records that are put through the functions at once just now.")
SPLIT_LAG = Figure("split_pending_records", "Records of a split left to read.", ("source", "split"))

FIGURES = (
    RECORDS_IN,
    RECORDS_OUT,
    BYTES_IN,
    BYTES_OUT,
    LATE_RECORDS,
    OPEN_WINDOWS,
    TABLE_ROWS,
    RECORDS_SKIPPED,
    DEAD_LETTERS,
    STREAM_TIME,
    OLDEST_TRANSACTION,
    BUSY_TIME,
    OPERATOR_BUSY_TIME,
    BATCH_RECORDS,
    SPLIT_LAG,
)
