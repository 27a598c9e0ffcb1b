"""A job on a machine that lends it next to nothing: no variables, and nothing that can be written to but one folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource("{name}")).map(bytes.upper).sink(KafkaSink("{out}"))
"""

READ_ONLY = """
mount --make-rprivate /
mount --bind "$0" "$0"
mount -o remount,ro,bind /
for place in $(awk '$2 !~ "^/(proc|sys|dev)" {print $2}' /proc/mounts); do
  [ "$place" = "$0" ] || mount -o remount,ro,bind "$place" 2>/dev/null
done
if touch "$1" 2>/dev/null; then echo "$1 can be written to" >&2; exit 77; fi
shift
exec "$@"
"""


@pytest.fixture
def job(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> tuple[list[str], str]:
    """The arguments of a bounded run with ten records before it, and the topic it writes."""
    name, out = topic(), topic()
    for each in (name, out):
        create_topic(broker.bootstrap_servers, each)
    produce(broker.bootstrap_servers, name, [Write(b"a%d" % number) for number in range(10)])
    (tmp_path / "job.py").write_text(JOB.format(name=name, out=out))
    options = ["-b", broker.bootstrap_servers, "--checkpoint-dir", str(tmp_path / "checkpoints"), "--until-end"]
    return [sys.executable, "-m", "twopc", "run", str(tmp_path / "job.py"), *options, "--host", "process"], out


def written(broker: Broker, topic: str) -> list[bytes | None]:
    return [read.value for read in read_topic(broker.bootstrap_servers, topic)]


def ran(command: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    # The code under test is found where the tests found it.
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, cwd=folder, env=found | variables, capture_output=True, text=True)


def test_a_job_runs_without_a_single_variable(broker: Broker, job: tuple[list[str], str], tmp_path: Path) -> None:
    command, out = job
    ended = ran(command, tmp_path, {"TMPDIR": os.environ["TMPDIR"]} if "TMPDIR" in os.environ else {})
    assert ended.returncode == 0, ended.stderr
    assert written(broker, out) == [b"A%d" % number for number in range(10)]


@pytest.mark.proof
def test_a_job_runs_where_nothing_can_be_written_to_but_the_folder_that_it_is_given(
    broker: Broker, job: tuple[list[str], str], tmp_path: Path
) -> None:
    unshare = shutil.which("unshare")
    apart = [unshare or "", *([] if os.getuid() == 0 else ["--map-root-user"]), "--mount"]
    if unshare is None or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives nobody a view of its file system of his own")
    command, out = job
    lent = tmp_path / "lent"
    lent.mkdir()
    command[command.index("--checkpoint-dir") + 1] = str(lent / "checkpoints")
    read_only = [*apart, "bash", "-c", READ_ONLY, str(lent), str(tmp_path / "forbidden"), *command]

    refused = ran(read_only, tmp_path, {"HOME": str(tmp_path)})
    assert refused.returncode == 2
    assert "there is no folder for temporary files that can be written to: name one with TMPDIR" in refused.stderr

    # Only the folder of the run is lent: whoever asks for a home or for /tmp is told so by the system.
    ended = ran(read_only, tmp_path, {"HOME": str(tmp_path), "TMPDIR": str(lent)})
    assert ended.returncode == 0, ended.stderr
    assert "name another folder with TWOPC_STATE_DIR" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert written(broker, out) == [b"A%d" % number for number in range(10)]
