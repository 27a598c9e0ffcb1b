"""What an installation brings with it, outside this repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_what_spark_asks_for_is_installed_with_the_package_and_not_only_for_its_tests(package: str) -> None:
    """PySpark itself asks for neither, and refuses at the first stage to do without."""
    required = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    assert package in [re.split(r"[<>=\[]", each)[0] for each in required]
