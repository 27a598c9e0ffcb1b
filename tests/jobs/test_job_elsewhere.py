"""A job file that goes to another folder, beside files named as libraries: by the command line, on a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.warm_start import COLD
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os
import tempfile
from pathlib import Path
from twopc import Job, KafkaSink, KafkaSource

PREFIX = Path("prefix").read_text()
os.chdir(tempfile.mkdtemp())

def count(total, value):
    total = (total or 0) + 1
    return total, b"%s%d" % (PREFIX.encode(), total)

job = Job(PREFIX)
job.source(KafkaSource(f"{PREFIX}-in")).stateful_map(count, name="count").sink(KafkaSink(f"{PREFIX}-out"))
"""
SHADOWS = ("grpc.py", "orjson.py", "fastavro.py", "google/__init__.py", "typing_extensions.py")


def test_a_job_that_changes_its_folder_goes_on_where_it_was_beside_files_named_as_libraries(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}")
    for path, text in {"job.py": JOB, "prefix": name, **dict.fromkeys(SHADOWS, "TOPIC = 'mine'")}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        produce(servers, f"{name}-in", [Write(b"x", key=b"k")] * 3)
        # State in files, which each worker writes to the checkpoint folder by itself.
        at = ("-b", servers, "--checkpoint-dir", "cp", "--checkpoint-inline-bytes", "0")
        command = [sys.executable, "-P", "-m", "twopc", "run", "job.py", *at, "--host", "process", "--until-end"]
        # Forked from a process that has all libraries already, a worker would look for none.
        done = subprocess.run(command, env=os.environ | {COLD: "1"}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert [record.value for record in read_topic(servers, f"{name}-out")] == [
        f"{name}{total}".encode() for total in range(1, 7)
    ]
    assert (tmp_path / "cp" / name).is_dir()
