"""The files that a tier is looked for in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.tiers.tier import TIERS, Tier

ROOT = Path(__file__).resolve().parents[3]


def test_a_tier_is_looked_for_in_files_that_name_its_marker(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "test_a.py").write_text("pytestmark = [pytest.mark.drill, pytest.mark.proof]")
    (tmp_path / "test_b.py").write_text("broker")
    (tmp_path / "kit.py").write_text("pytest.mark.drill")
    assert Tier("d", "drill", 1, in_files="drill").files(tmp_path) == [str(tmp_path / "deep" / "test_a.py")]
    assert Tier("d", "drill", 1).files(tmp_path) == []


def test_a_change_and_a_release_differ_in_the_values_of_the_same_variables() -> None:
    names = [[set(variables) for variables in tier.variables.values()] for tier in TIERS]
    assert all(each == of_tier[0] for of_tier in names for each in of_tier)


@pytest.mark.parametrize(
    "marker",
    [
        pytest.param(tier.in_files, marks=pytest.mark.proof if number else ())
        for number, tier in enumerate(tier for tier in TIERS if tier.in_files)
    ],
)
def test_a_test_that_has_its_marker_from_elsewhere_is_refused(tmp_path: Path, marker: str) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_itemcollected\n")
    (tmp_path / "marks.py").write_text(f"import pytest\nMARKS = pytest.mark.{marker}\n")
    (tmp_path / "test_it.py").write_text("from marks import MARKS\npytestmark = MARKS\ndef test_it(): ...\n")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "test_it.py"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert f"test_it.py has tests of the tier {marker!r} and does not name" in said.stderr + said.stdout
    assert said.returncode == pytest.ExitCode.USAGE_ERROR
