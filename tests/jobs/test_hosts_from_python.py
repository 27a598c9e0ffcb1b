"""`job.run(host=...)` from a program: where the job is found, and where its functions run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from twopc import Job, KafkaSink, KafkaSource
from twopc.errors import ConfigurationError, UserCodeError
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

HEAD = """
import os, sys, threading
from twopc import Job, KafkaSink, KafkaSource

def stamp(value):
    return b"%d %d" % (os.getpid(), threading.main_thread() is threading.current_thread())

job = Job("NAME")
job.source(KafkaSource("NAME-in")).map(stamp).sink(KafkaSink("NAME-out"))
"""
RUN = """
report = job.run(bootstrap_servers="SERVERS", checkpoint_dir="CHECKPOINTS", until_end=True, host="HOST")
print(os.getpid(), report.records_in)
"""
GUARDED = 'if __name__ == "__main__":' + RUN.replace("\n", "\n    ")


class Program:
    """A program of a user, in a folder of its own, and topics."""

    def __init__(self, broker: Broker, folder: Path, name: str) -> None:
        self.servers, self.folder, self.name = broker.bootstrap_servers, folder, name
        for suffix in ("in", "out"):
            create_topic(self.servers, f"{name}-{suffix}")
        produce(self.servers, f"{name}-in", [Write(b"%d" % number) for number in range(10)])

    def write(self, file: str, text: str, host: str) -> Path:
        values = {
            "NAME": self.name,
            "SERVERS": self.servers,
            "CHECKPOINTS": str(self.folder / "checkpoints"),
            "HOST": host,
        }
        for key, value in values.items():
            text = text.replace(key, value)
        path = self.folder / file
        path.write_text(text)
        return path

    def run(self, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], cwd=self.folder, input=given, capture_output=True, text=True, timeout=300
        )

    def output(self) -> list[list[int]]:
        records = read_topic(self.servers, f"{self.name}-out")
        return [[int(word) for word in (record.value or b"").split()] for record in records]


@pytest.fixture
def program(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> Program:
    return Program(broker, tmp_path, topic())


def test_the_functions_run_in_a_process_of_their_own(program: Program) -> None:
    path = program.write("job.py", HEAD + GUARDED, "process")
    finished = program.run(str(path))
    assert finished.returncode == 0, finished.stderr
    driver, records = map(int, finished.stdout.split())
    assert records == 10
    assert {pid for pid, _ in program.output()} != {driver}
    assert len(program.output()) == 10


def test_a_job_that_another_module_defines_is_loaded_from_there(program: Program) -> None:
    program.write("flights.py", HEAD, "process")
    path = program.write("main.py", "import os\nfrom flights import job as it\njob = it\n" + RUN, "process")
    finished = program.run(str(path))
    assert finished.returncode == 0, finished.stderr
    assert len(program.output()) == 10


def test_a_program_that_runs_its_job_when_it_is_loaded_is_told_how_to_write_it(program: Program) -> None:
    path = program.write("job.py", HEAD + RUN, "process")
    finished = program.run(str(path))
    assert finished.returncode != 0
    assert "if __name__ == '__main__':" in finished.stderr
    assert "trying again" not in finished.stderr
    assert program.output() == []


def test_a_job_that_is_in_no_file_is_told_what_works(program: Program) -> None:
    text = program.write("unused.txt", HEAD + RUN, "process").read_text()
    finished = program.run("-", given=text)
    assert finished.returncode != 0
    assert "host='inline'" in finished.stderr


@pytest.mark.parametrize("thread", ["main", pytest.param("another", marks=pytest.mark.proof)])
def test_inline_the_functions_run_in_the_thread_that_runs_the_job(program: Program, thread: str) -> None:
    text = HEAD + RUN
    if thread == "another":
        text = HEAD + f"thread = threading.Thread(target=lambda: exec({RUN!r}))\nthread.start()\nthread.join()\n"
    finished = program.run("-", given=program.write("unused.txt", text, "inline").read_text())
    assert finished.returncode == 0, finished.stderr
    driver, records = map(int, finished.stdout.split())
    assert records == 10
    assert program.output() == [[driver, int(thread == "main")]] * 10


def test_inline_a_debugger_stops_in_a_function(program: Program) -> None:
    path = program.write("job.py", HEAD.replace("return b", "breakpoint()\n    return b") + GUARDED, "inline")
    finished = program.run(str(path), given="p value\n" + "c\n" * 11)
    assert finished.returncode == 0, finished.stderr
    assert "b'0'" in finished.stdout
    assert len(program.output()) == 10


@pytest.mark.proof
def test_inline_goes_on_where_the_run_before_ended(program: Program, broker: Broker) -> None:
    for _ in range(2):
        path = program.write("job.py", HEAD + GUARDED, "inline")
        assert program.run(str(path)).returncode == 0
        produce(broker.bootstrap_servers, f"{program.name}-in", [Write(b"more")])
    assert len(program.output()) == 11


def test_inline_an_error_of_a_function_is_raised_here_with_its_cause(program: Program) -> None:
    def fail(value: bytes) -> bytes:
        return b"%d" % (1 // int(value))

    job = Job(program.name)
    job.source(KafkaSource(f"{program.name}-in")).map(fail).sink(KafkaSink(f"{program.name}-out"))
    with pytest.raises(UserCodeError, match=r"-in\[0\]@0: .*fail.* ZeroDivisionError") as caught:
        job.run(
            host="inline",
            bootstrap_servers=program.servers,
            checkpoint_dir=str(program.folder / "checkpoints"),
            until_end=True,
        )
    assert any("1 // int(value)" in line for line in traceback.format_exception(caught.value))


def test_inline_ctrl_c_takes_a_last_checkpoint(program: Program) -> None:
    text = HEAD + GUARDED.replace("until_end=True, ", 'checkpoint_interval="100ms", ').replace("records_in", "stopped")
    running = subprocess.Popen(
        [sys.executable, str(program.write("job.py", text, "inline"))], cwd=program.folder, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 200
    while len(program.output()) < 10:
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=200)
    assert running.returncode == 0
    assert out.split()[1] == b"True"


def test_inline_has_one_subtask(program: Program) -> None:
    job = Job(program.name)
    job.source(KafkaSource(f"{program.name}-in")).sink(KafkaSink(f"{program.name}-out"))
    with pytest.raises(ConfigurationError, match=r"inline.*parallelism"):
        job.run(host="inline", parallelism=2, bootstrap_servers=program.servers, checkpoint_dir=str(program.folder))
