"""The page that tells users how to test a job: what it shows runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "testing-jobs.md"


def test_the_program_of_the_page_passes_the_tests_of_the_page(tmp_path: Path) -> None:
    program, tests, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "visits.py").write_text(program, "utf-8")
    (tmp_path / "test_visits.py").write_text(tests, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
