"""The folder of a JVM of ours, and what later ones start with: stand-ins end as a JVM does, when their input does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka.kit import eventually
from twopc.spark import own_jvm
from twopc.spark.own_jvm import OwnJvm
from twopc.spark.quick_start import LIGHT, QuickStart


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, beside a cache folder, and nothing that a tester's environment says of JVMs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TWOPC_CACHE_DIR", str(tmp_path / "cache"))
    for variable in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "")
    return folder


def start(own: OwnJvm, script: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE)
    own.started(process)
    return process


def test_what_a_killed_jvm_leaves_goes_with_its_folder(temporary: Path) -> None:
    own = OwnJvm(QuickStart("local[1]"))
    (option,) = [option for option in own.options() if "java.io.tmpdir" in option]
    folder = Path(option.strip('"').partition("=")[2])
    assert folder.parent == temporary
    process = start(own, "cat")
    (folder / "artifacts").mkdir()
    own.kill()
    assert (process.returncode, list(temporary.iterdir())) == (-9, [])


DRIVER = """
import subprocess, time
from twopc.spark.own_jvm import OwnJvm
from twopc.spark.quick_start import QuickStart
own = OwnJvm(QuickStart("spark://10.0.0.5:7077"))
(option,) = own.options()
folder = option.strip('"').partition("=")[2]
# It takes a moment to end after its input has, and needs its folder until then.
script = f"trap '' INT; echo; cat; sleep 0.7; : > {folder}/last; mv {folder}/last {folder}-kept"
own.started(jvm := subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
jvm.stdout.readline()
print(flush=True)
time.sleep(60)
"""


def test_a_driver_that_is_killed_with_its_group_leaves_nothing_once_its_jvm_has_ended(temporary: Path) -> None:
    environment = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-c", DRIVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, process_group=0) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        (folder,) = temporary.iterdir()
        os.killpg(driver.pid, signal.SIGINT)
        driver.kill()
    eventually(lambda: not folder.exists())
    assert list(temporary.iterdir()) == [Path(f"{folder}-kept")]


def test_one_that_ends_in_order_leaves_what_the_next_starts_with_and_no_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnJvm(QuickStart("local[1]"))
    (written,) = [option.partition("=")[2] for option in own.options() if "ArchiveClassesAtExit" in option]
    process = start(own, f"cat; echo classes > {written}")
    own._end()
    assert (process.returncode, list(temporary.iterdir())) == (0, [])
    following = OwnJvm(QuickStart("local[1]"))
    (used,) = [option.partition("=")[2] for option in following.options() if "SharedArchiveFile" in option]
    assert Path(used).read_text() == "classes\n"
    following.kill()


def test_one_that_dies_as_it_writes_leaves_nothing_to_the_next(temporary: Path) -> None:
    own = OwnJvm(QuickStart("local[1]"))
    (written,) = [option.partition("=")[2] for option in own.options() if "ArchiveClassesAtExit" in option]
    start(own, f"cat; echo half > {written}; kill -9 $$")
    own._end()
    assert not any("SharedArchiveFile" in option for option in QuickStart("local[1]").options(temporary))


def test_one_that_does_not_end_is_killed_and_leaves_nothing_half_written(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_jvm, "END_SECONDS", 0.1)
    quick = QuickStart("local[1]")
    own = OwnJvm(quick)
    (written,) = [option.partition("=")[2] for option in own.options() if "ArchiveClassesAtExit" in option]
    quick.archive_seconds = 0.0
    process = start(own, f"echo half > {written}; exec sleep 60")
    own._end()
    assert (process.returncode, list(temporary.iterdir())) == (-9, [])
    assert not any("SharedArchiveFile" in option for option in QuickStart("local[1]").options(temporary))


def test_a_process_that_was_forked_off_ours_ends_no_jvm(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnJvm(QuickStart("spark://10.0.0.5:7077"))
    process = start(own, "cat")
    with monkeypatch.context() as forked:
        forked.setattr("os.getpid", lambda: -1)
        own._end()
    assert (process.poll(), len(list(temporary.iterdir()))) == (None, 1)
    own.kill()


def test_the_jvm_of_a_cluster_and_one_whose_user_has_an_archive_start_as_they_are_told(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert QuickStart("spark://10.0.0.5:7077").options(temporary) == ()
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:SharedArchiveFile=/mine.jsa")
    assert QuickStart("local[1]").options(temporary) == ()


def test_where_nothing_can_be_kept_a_jvm_compiles_lightly_all_the_same(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "file").touch()
    monkeypatch.setenv("TWOPC_CACHE_DIR", str(temporary / "file" / "cache"))
    assert QuickStart("local[1]").options(temporary) == (LIGHT,)
