"""The page on metrics, the alerts and the dashboard speak of metrics that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from tests.metrics.kit import RUNNING, ScrapedMetrics
from twopc.metrics.jobs import JobMetrics
from twopc.metrics.queries import QueryMetrics

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "metrics"
NAME = re.compile(r"\btwopc_\w+")
SAMPLES = re.compile(r"_(total|bucket|sum|count)$")


def served() -> dict[str, str]:
    """Return the type of every metric of ours."""
    registries = (JobMetrics(lambda: [RUNNING]).registry, QueryMetrics("q").registry)
    text = "".join(generate_latest(each).decode() for each in registries)
    found = {family.name: family.type for family in ScrapedMetrics(text).families.values()}
    return {name: kind for name, kind in found.items() if name.startswith("twopc_") and not name.endswith("_created")}


@pytest.mark.parametrize("document", ["alerts.yml", "alerts_test.yml", "dashboard.json"])
def test_every_metric_that_a_document_names_is_served(document: str) -> None:
    named = {SAMPLES.sub("", name) for name in NAME.findall((FOLDER / document).read_text())}
    assert named - served().keys() == set()


def test_the_page_has_a_row_for_every_metric_and_no_other() -> None:
    rows = re.findall(r"^\| `(twopc_\w+)`[^|]*\| (\w+) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert {SAMPLES.sub("", name): kind for name, kind in rows} == served()
