"""What the documents say of code and tests is true: tables are fresh, and every test that is named exists."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path

import pytest

from coordinator.status import Phase
from scripts.protocol_doc import DOCUMENTS, parts, refreshed
from scripts.protocol_tables import TABLES, phases
from tests.crash_cells.cells import CELLS, Signal
from tests.simulation.every_mutant import ALL
from tests.simulation.queries.mutants import MUTANTS, MUTANTS_OF_EXPIRY, MUTANTS_OF_SILENCE
from twopc.faults.crash_table import CrashPoint

DOCS = DOCUMENTS[0].parent
ROOT = DOCS.parent
NAMED = re.compile(r"`(tests/[\w./]+?)(?:::(test_\w+))?`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.name))
def test_the_generated_parts_are_fresh(document: Path) -> None:
    text = document.read_text()
    assert refreshed(text) == text, f"{document.name} is stale: python -m scripts.protocol_doc"


def test_every_table_has_its_place() -> None:
    assert sorted(part for document in DOCUMENTS for part in parts(document.read_text())) == sorted(TABLES)


def test_the_page_on_testing_counts_places_cells_and_breaks_as_they_are() -> None:
    page = (DOCS / "testing.md").read_text()
    assert f"names {len(CrashPoint)} places" in page
    assert {(cell.point, cell.signal) for cell in CELLS} == set(product(CrashPoint, Signal))
    assert "plays all of them" in page
    assert f": {len(CELLS)} cells" in page
    assert f"breaks the protocol in {len(ALL)} ways" in page
    assert f"broken in {len(MUTANTS + MUTANTS_OF_SILENCE + MUTANTS_OF_EXPIRY)} ways" in page


def test_the_page_on_testing_says_which_tests_each_folder_needs() -> None:
    page = (DOCS / "testing.md").read_text()
    table = page[page.index("| folder changed |") : page.index("How it behaves between two messages")]
    folders = [f"twopc/{path.parent.name}" for path in ROOT.glob("twopc/*/__init__.py")]
    assert [folder for folder in [*folders, "coordinator/", "proto/"] if f"`{folder}`" not in table] == []
    assert [path for path in re.findall(r"`(tests/[\w./]+)`", table) if not (ROOT / path).exists()] == []


PAGES = (
    *DOCS.glob("*.md"),
    *DOCS.glob("*/*.md"),
    *ROOT.glob("tests/**/README.md"),
    ROOT / "README.md",
    ROOT / "benchmarks" / "README.md",
)
LINK = re.compile(r"\]\(([^()#:\s]+)(?:#[\w-]*)?\)")


@pytest.mark.parametrize("page", sorted(str(page.relative_to(ROOT)) for page in PAGES))
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    links = LINK.findall((ROOT / page).read_text())
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


@pytest.mark.parametrize("page", sorted(str(page.relative_to(ROOT)) for page in PAGES))
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    named = NAMED.findall((ROOT / page).read_text())
    assert [path for path, _ in named if not (ROOT / path).exists()] == []
    assert [f"{path}::{test}" for path, test in named if test and test not in names_in(ROOT / path)] == []


def test_every_invariant_and_hazard_has_its_row() -> None:
    text = DOCUMENTS[0].read_text()
    for letter, count in (("I", 14), ("H", 46)):
        assert re.findall(rf"^\| {letter}(\d+) \|", text, re.MULTILINE) == [str(each) for each in range(1, count + 1)]


def test_the_table_of_phases_knows_every_phase() -> None:
    assert all(phase.name in phases() for phase in Phase)


def test_the_crash_table_has_every_point() -> None:
    assert all(f"| {point.value.code} |" in TABLES["crashes"]() for point in CrashPoint)


def names_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}
