"""What is shown to be pasted runs as it stands: the recipe in `twopc --help`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from twopc import cli
from twopc.testing.ports import free_port

pytestmark = pytest.mark.broker

SECONDS = 500.0


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A shell in which `twopc` is this one, and no setting comes from outside."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("TWOPC_BOOT", "TWOPC_CHECK"))
    }
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    yield inherited | {"PATH": os.pathsep.join(paths)}
    subprocess.run(
        [sys.executable, "-m", "twopc", "broker", "stop", "--data-dir", str(tmp_path / "kafka")],
        check=False,
        timeout=SECONDS,
    )


def test_the_recipe_of_the_help_runs_as_it_stands(tmp_path: Path, environment: dict[str, str]) -> None:
    shown = CliRunner().invoke(cli.app, ["--help"], prog_name="twopc", terminal_width=80).stdout
    block = next(part for part in shown.split("\n\n") if "twopc broker start" in part)
    recipe = "\n".join(line.strip() for line in block.splitlines())
    assert "127.0.0.1:9092" in recipe
    done = subprocess.run(
        ["bash", "-ec", recipe.replace("9092", str(free_port()))],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "in: 1,000 of 1,000 records" in done.stdout
    assert "upper: finished; 1,000 records in, 1,000 out" in done.stdout
    assert done.stdout.count("\tKEY-") == 3, "records of the output, in capitals"
    assert "stopped 127.0.0.1" in done.stdout
