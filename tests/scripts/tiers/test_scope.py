"""A run leaves nothing behind, however it ends: whole runs of one test, which starts what would live on for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from scripts.tiers.keeper import PREFIX

ADOPTS = sys.platform == "linux"
"""Whether a run sees also what has nothing of its environment."""

SECONDS = 120.0
"""The longest that a run may take to end, on any machine."""

LEFT = 2 if ADOPTS else 1
ROOT = Path(__file__).resolve().parents[3]

RUN = """
import signal
import sys
from pathlib import Path
from scripts.tiers import __main__ as command, run, scope
from scripts.tiers.tier import Tier

# Where these tests run in the background Ctrl-C is ignored, and what they start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
processes = int(sys.argv[1])
scope.GRACE_SECONDS = 0.2
run.WIND_DOWN_SECONDS = 300
command.ROOT, command.FOLDER = Path.cwd(), Path.cwd() / "results"
command.TIERS = (Tier("small", "not other", processes),)
sys.exit(command.main(["test", "small"]))
"""

# What it starts ends for no signal but SIGKILL, is in a session of its own, and has no parent: a shell that is gone.
TEST = """
import os
import subprocess
import tempfile
import time
from pathlib import Path

def start(name, **environment):
    shell = f"trap '' TERM INT HUP; sleep 300 & echo $! > {{Path.cwd() / name}}.new; mv {{name}}.new {{name}}"
    subprocess.run(["sh", "-c", shell], start_new_session=True, check=True, **environment)

def test_that_leaves_much():
    if Path("tests").exists():
        return  # It is played again when the process that it ran in is killed.
    folder = Path(tempfile.mkdtemp())
    (folder / "file").touch()
    folder.chmod(0o500)
    start("marked")
    start("unmarked", env={{"PATH": os.environ["PATH"]}})
    Path("tests.new").write_text(f"{{os.getpid()}} {{os.getppid()}} {{folder}}")
    Path("tests.new").rename("tests")
    time.sleep({seconds})
"""

ONLY_XDIST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
"""The plugins of a pytest that starts in no time."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    proof: not for every change\n    other: none\n")
    return tmp_path


@pytest.fixture
def start(project: Path) -> Iterator[Start]:
    """Starts a run of the test, which sleeps so long at its end, in this many processes of tests."""
    running: list[subprocess.Popen[str]] = []

    def begin(seconds: int, processes: int = 0) -> subprocess.Popen[str]:
        (project / "test_it.py").write_text(TEST.format(seconds=seconds))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", RUN, str(processes)],
                cwd=project,
                env=environment | {"PYTHONPATH": str(ROOT)} | ONLY_XDIST,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        )
        return running[-1]

    yield begin
    for each in running:
        if each.poll() is None:
            each.kill()
        assert each.stdout is not None
        each.stdout.close()
        each.wait()


def test_what_outlives_a_run_that_nobody_disturbs_is_ended_and_named(project: Path, start: Start) -> None:
    run = start(0)
    output, _ = run.communicate()
    assert run.returncode == 0
    assert_nothing_is_left(project)
    named = [line for line in output.splitlines() if line.startswith("outlived the tier small, ended by the run: ")]
    assert [line.rpartition(": ")[2] for line in named] == ["sleep 300"] * LEFT
    marked = (project / "marked").read_text().strip()
    assert f": process {marked} of test_it.py::test_that_leaves_much: sleep 300" in "\n".join(named)


def test_a_run_that_ctrl_c_ends_leaves_nothing(project: Path, start: Start) -> None:
    run = start(300)
    await_tests(project)
    # As a terminal does: all that are in the foreground are told.
    os.killpg(run.pid, signal.SIGINT)
    assert_ended_with(130, run, "tests: interrupted")
    assert_nothing_is_left(project)


def test_a_run_that_is_told_to_end_tells_its_tests_and_leaves_nothing(project: Path, start: Start) -> None:
    run = start(300)
    await_tests(project)
    run.terminate()
    assert_ended_with(130, run, "tests: interrupted")
    assert_nothing_is_left(project)


@pytest.mark.parametrize("kill", [os.kill, os.killpg], ids=["alone", "with all of its session"])
def test_a_run_that_is_killed_leaves_nothing_of_what_inherited_its_environment(
    project: Path, start: Start, kill: Callable[[int, int], None]
) -> None:
    run = start(300)
    tests = await_tests(project)
    kill(run.pid, signal.SIGKILL)
    run.wait()
    await_end_of_folder(project)
    assert not any(map(is_alive, [*tests, pid_in(project / "marked")]))
    # Nobody is left who would know of this one.
    with suppress(ProcessLookupError):
        os.kill(pid_in(project / "unmarked"), signal.SIGKILL)


def test_a_run_whose_pytest_is_killed_fails_and_leaves_nothing(project: Path, start: Start) -> None:
    run = start(300)
    tests, _runner = await_tests(project)
    os.kill(tests, signal.SIGKILL)
    assert_ended_with(1, run, "small (pytest ended with -9)")
    assert_nothing_is_left(project)


def test_a_run_one_of_whose_processes_of_tests_is_killed_fails_and_leaves_nothing(project: Path, start: Start) -> None:
    run = start(300, processes=1)
    worker, _pytest = await_tests(project)
    os.kill(worker, signal.SIGKILL)
    assert_ended_with(1, run, "FAILED test_it.py::test_that_leaves_much")
    assert_nothing_is_left(project)


def await_tests(project: Path) -> list[int]:
    """Return the process that runs the test, and its parent, once it has started all that it starts."""
    await_true((project / "tests").exists)
    return [int(word) for word in (project / "tests").read_text().split()[:2]]


def await_end_of_folder(project: Path) -> None:
    await_true(lambda: not run_folder(project).exists())


def run_folder(project: Path) -> Path:
    folder = Path((project / "tests").read_text().split()[2])
    assert folder.parent.name.startswith(PREFIX)
    return folder.parent


def assert_ended_with(code: int, run: subprocess.Popen[str], said: str) -> None:
    output, _ = run.communicate(timeout=SECONDS)
    assert run.returncode == code
    assert said in output


def assert_nothing_is_left(project: Path) -> None:
    assert not run_folder(project).exists()
    assert not is_alive(pid_in(project / "marked"))
    unmarked = pid_in(project / "unmarked")
    if not ADOPTS:
        os.kill(unmarked, signal.SIGKILL)
    assert not ADOPTS or not is_alive(unmarked)


def pid_in(file: Path) -> int:
    return int(file.read_text())


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
