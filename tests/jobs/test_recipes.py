"""What is shown to be pasted runs as it stands: the recipe of the help, the README, and all of docs/start.md."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from twopc import cli
from twopc.testing.ports import free_port

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1_200)]

SECONDS = 1_000.0
ROOT = Path(__file__).parents[2]

Pasted = Callable[[str], str]


@pytest.fixture
def pasted(tmp_path: Path) -> Iterator[Pasted]:
    """Run lines in one shell, in a folder of their own, where `twopc` is this one and its broker has a free port."""
    inherited = {name: value for name, value in os.environ.items() if not re.match("TWOPC_(BOOTSTRAP|CHECK)", name)}
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = inherited | {"PATH": os.pathsep.join(paths)}
    folders: list[str] = []

    def paste(lines: str) -> str:
        assert "9092" in lines
        folders.extend(re.findall(r"--data-dir (\S+)", lines))
        script, output = tmp_path / "pasted.sh", tmp_path / "pasted.out"
        script.write_text(lines.replace("9092", str(free_port())))
        with (
            output.open("w") as out,
            subprocess.Popen(
                ["bash", "-e", script],
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as shell,
        ):
            try:
                code = shell.wait(SECONDS)
            finally:
                if shell.poll() is None:
                    os.killpg(shell.pid, signal.SIGKILL)
        assert code == 0, output.read_text()[-5_000:]
        return output.read_text()

    yield paste
    for folder in dict.fromkeys(folders):
        stop = [sys.executable, "-m", "twopc", "broker", "stop", "--data-dir", str(tmp_path / folder)]
        subprocess.run(stop, check=False, timeout=SECONDS, stdout=subprocess.DEVNULL)


def blocks(document: Path) -> list[str]:
    """The blocks of a document that are for a shell."""
    return re.findall(r"^```sh\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.proof
def test_the_recipe_of_the_help_runs_as_it_stands(pasted: Pasted) -> None:
    shown = CliRunner().invoke(cli.app, ["--help"], prog_name="twopc", terminal_width=80).stdout
    recipe = next(part for part in shown.split("\n\n") if "twopc broker start" in part)
    said = pasted("\n".join(line.strip() for line in recipe.splitlines()))
    assert "in: 1,000 of 1,000 records" in said
    assert "upper: finished; 1,000 records in, 1,000 out" in said
    assert said.count("\tKEY-") == 3, "records of the output, in capitals"
    assert "stopped 127.0.0.1" in said


def test_the_first_steps_of_the_readme_run_as_they_stand(pasted: Pasted, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    [steps] = [block for block in blocks(ROOT / "README.md") if "twopc broker start" in block]
    said = pasted(steps)
    assert said.count("\tKEY-") == 3
    assert "1,000" in said


@pytest.mark.spark
@pytest.mark.proof
def test_every_command_of_the_first_document_runs_as_it_stands(pasted: Pasted) -> None:
    setup, *steps = blocks(ROOT / "docs" / "start.md")
    assert setup.startswith("clone=$PWD\n"), "what installs is left out: this is installed already"
    said = pasted("\n".join([f"clone={shlex.quote(str(ROOT))}", *steps]))
    assert re.findall(r"^out: .* records$", said, re.MULTILINE) == ["out: 100,000 records", "out: 200,000 records"]
    assert "clicks-per-minute: 27 records" in said
    assert "2 passed" in said
