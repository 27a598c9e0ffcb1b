"""Arming crash points, in processes of their own; and the table that they stand in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from twopc.faults.points import REACHED_VARIABLE, VARIABLE, CrashPoint, points_reached

CODES = [
    *(f"C{number}" for number in range(1, 16)),
    *(f"T{number}" for number in range(1, 20)),
    *(f"G{number}" for number in range(1, 4)),
    *(f"R{number}" for number in range(1, 11)),
]

PASSES_THREE_PLACES = """
from twopc.faults.points import CrashPoint, reached
for checkpoint in (1, 2, 3):
    for subtask in (0, 1):
        reached(CrashPoint.AFTER_ACK, checkpoint=checkpoint, subtask=subtask)
        print("acknowledged", checkpoint, subtask, flush=True)
        reached(CrashPoint.BEFORE_COMMIT, checkpoint=checkpoint, subtask=subtask)
"""


def started(armed: str, **environment: str) -> subprocess.Popen[str]:
    variables = os.environ | {VARIABLE: armed} | environment
    return subprocess.Popen(
        [sys.executable, "-c", PASSES_THREE_PLACES],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(armed: str, **environment: str) -> tuple[int, list[str]]:
    """The exit code, and the lines that the process came to print."""
    process = started(armed, **environment)
    output, _ = process.communicate(timeout=240)
    return process.returncode, output.splitlines()


def test_there_are_47_crash_points_and_two_of_them_have_two_halves() -> None:
    assert sorted(point.code for point in CrashPoint) == sorted([*CODES, "T17+", "R6+"])


@pytest.mark.parametrize("point", CrashPoint, ids=lambda point: point.code)
def test_every_row_of_the_table_is_filled_in(point: CrashPoint) -> None:
    row = point.value
    assert all(re.fullmatch(r"[a-zA-Z].{5,}[^.]", text) for text in (row.happened, row.durable, row.recovery))


def test_nothing_happens_where_nothing_is_armed(tmp_path: Path) -> None:
    assert ended("")[0] == 0
    assert ended(f"AFTER_STORE,once={tmp_path / 'once'}")[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_process_is_killed_at_the_first_checkpoint_that_is_late_enough_in_the_subtask_meant(tmp_path: Path) -> None:
    code, lines = ended(f"AFTER_ACK,checkpoint=2,subtask=1,once={tmp_path / 'once'}")
    assert code == -signal.SIGKILL
    assert lines[-1] == "acknowledged 2 0"


def test_the_file_tells_who_it_was_and_keeps_everyone_after_it_alive(tmp_path: Path) -> None:
    once = tmp_path / "once"
    process = started(f"AFTER_ACK,once={once}")
    process.communicate(timeout=240)
    assert once.read_text() == f"{process.pid}\n"
    assert ended(f"AFTER_ACK,once={once}")[0] == 0


def test_term_goes_through_the_handler_of_the_process(tmp_path: Path) -> None:
    assert ended(f"AFTER_ACK,once={tmp_path / 'once'},term")[0] == -signal.SIGTERM


def test_a_stopped_process_goes_on_when_it_is_woken(tmp_path: Path) -> None:
    once = tmp_path / "once"
    process = started(f"AFTER_ACK,once={once},stop")
    assert os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    os.kill(process.pid, signal.SIGCONT)
    output, _ = process.communicate(timeout=240)
    assert (process.returncode, len(output.splitlines())) == (0, 6)


def test_a_held_process_waits_for_its_release(tmp_path: Path) -> None:
    once = tmp_path / "once"
    process = started(f"AFTER_ACK,once={once},hold")
    while not once.exists():
        time.sleep(0.005)
    assert process.poll() is None
    (tmp_path / "once.release").touch()
    process.communicate(timeout=240)
    assert process.returncode == 0


def test_several_are_armed_at_once_and_act_in_their_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    code, lines = ended(f"BEFORE_COMMIT,once={first},pause=1;BEFORE_COMMIT,checkpoint=3,once={second}")
    assert (code, lines[-1]) == (-signal.SIGKILL, "acknowledged 3 0")
    assert first.exists()


def test_two_at_one_place_end_two_processes(tmp_path: Path) -> None:
    armed = ";".join(f"AFTER_ACK,once={tmp_path / name}" for name in ("first", "second"))
    assert ended(armed)[0] == -signal.SIGKILL
    assert (tmp_path / "first").exists()
    assert not (tmp_path / "second").exists()
    assert ended(armed)[0] == -signal.SIGKILL
    assert ended(armed)[0] == 0


def test_what_was_reached_is_counted_over_all_processes_even_those_that_were_killed(tmp_path: Path) -> None:
    folder = tmp_path / "reached"
    folder.mkdir()
    counting = {REACHED_VARIABLE: str(folder)}
    ended(f"AFTER_ACK,once={tmp_path / 'once'}", **counting)
    assert points_reached(folder) == {CrashPoint.AFTER_ACK}
    ended("", **counting)
    assert points_reached(folder) == {CrashPoint.AFTER_ACK, CrashPoint.BEFORE_COMMIT}
    assert all(len(set(lines)) == len(lines) for lines in (file.read_text().split() for file in folder.iterdir()))


@pytest.mark.parametrize(
    "armed", ["NOWHERE,once=f", "AFTER_ACK", "AFTER_ACK,once=f,kill,stop", "AFTER_ACK,once=f,pause=long"]
)
def test_what_can_not_be_understood_is_refused_by_name(armed: str) -> None:
    process = started(armed)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "TWOPC_CRASH_POINT" in errors
