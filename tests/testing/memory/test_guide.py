"""The programs of the guide run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from twopc import Job
from twopc.testing import MemoryRun

PAGE = Path(__file__).parents[3] / "docs" / "guide.md"
SECTIONS = dict(re.findall(r"^## (\w+)[^\n]*\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE))
MINUTE = 60_000
COMPARISON = "Beside"
"""What this section tells apart has its programs in the others."""


def job_of(section: str) -> Job:
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", SECTIONS[section], re.DOTALL)), names)
    job: Job = names["job"]
    return job


@pytest.mark.parametrize("section", [section for section in SECTIONS if section != COMPARISON])
def test_every_section_has_a_job(section: str) -> None:
    assert job_of(section).definition()


def test_the_processor_lets_the_first_payment_through_and_counts_them() -> None:
    with MemoryRun(job_of("process"), partitions=3) as run:
        for minute in (1, 2, 15, 16, 17):
            run.send("payments", {"id": "a", "at_ms": minute * MINUTE}, b"a")
        run.checkpoint()
        first, count = [record.value for record in run.read("payments-once")]
        assert (first["at_ms"], count) == (MINUTE, {"payments": 3})


def test_orders_are_named_by_a_table_that_every_subtask_has() -> None:
    with MemoryRun(job_of("broadcast"), partitions=3, parallelism=3) as run:
        run.send("products", {"name": "pen"}, "p")
        for n in range(6):
            run.send("orders", {"product": "pq"[n % 2]}, b"%d" % n)
        run.checkpoint()
        assert sorted(str(record.value["name"]) for record in run.read("orders-named")) == ["None"] * 3 + ["pen"] * 3
