"""The tests of what is compiled once more, on a build that AddressSanitizer and UBSan watch, leaks too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

TRIES = 3
SECONDS = 280
"""How long one run may take beside other tests; alone it takes 60."""

# It needs no broker, and takes as long as those that do.
pytestmark = [pytest.mark.broker, pytest.mark.proof, pytest.mark.timeout(TRIES * SECONDS + 60)]

ROOT = Path(__file__).resolve().parents[3]


class Part(NamedTuple):
    """A compiled module, with its folder and its sources there, and the files of its tests."""

    module: str
    folder: str
    sources: str
    tests: tuple[str, ...]


RECORDS = Part(
    "twopc.kafka.native._batches",
    "twopc/kafka/native/",
    "*.c",
    tuple(f"tests/kafka/native/test_{name}.py" for name in ("reading", "writing", "packed")),
)
LOOPS = Part("twopc.operators._loops", "twopc/operators/", "_loops.c", ("tests/operators/test_loops.py",))
AVRO = Part(
    "twopc.serde._avro",
    "twopc/serde/",
    "_avro.c",
    tuple(f"tests/serde/test_avro_{name}.py" for name in ("codec", "columns", "passing")),
)
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location(*sys.argv[1:3])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
import pytest
options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", "faulthandler_timeout=120"]
sys.exit(pytest.main([*options, *sys.argv[3:]]))
"""


def watched(part: Part, folder: Path) -> Path:
    """Return a build with sanitizers; skip where none can be made."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    made = folder / f"{part.module.rpartition('.')[2]}.abi3.so"
    command = [compiler, "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += ["-fvisibility=hidden", "-D_GNU_SOURCE", *SANITIZERS, f"-I{sysconfig.get_paths()['include']}"]
    command += [*map(str, sorted((ROOT / part.folder).glob(part.sources))), "-o", str(made)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Python.h" in built.stderr or "cannot find" in built.stderr:
        pytest.skip(f"no build with sanitizers here: {built.stderr.splitlines()[-1]}")
    assert built.returncode == 0, built.stderr
    return made


def library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class Run(NamedTuple):
    """A run of the tests; one that did not end has no code."""

    code: int | None
    stdout: str
    stderr: str


def run(command: list[str], environment: dict[str, str], folder: Path) -> Run:
    """Run it to its end; anew, twice at most, where the search for leaks died of a thread that ended meanwhile."""
    paths = folder / "stdout", folder / "stderr"
    for _ in range(TRIES):
        with paths[0].open("w") as stdout, paths[1].open("w") as stderr:
            try:
                code: int | None = subprocess.run(
                    command, cwd=ROOT, env=environment, stdout=stdout, stderr=stderr, timeout=SECONDS, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        ran = Run(code, *(path.read_text(errors="replace") for path in paths))
        if "LeakSanitizer has encountered a fatal error" not in ran.stderr:
            break
    return ran


@pytest.mark.parametrize("part", [RECORDS, LOOPS, AVRO], ids=["records", "loops", "avro"])
def test_no_byte_is_touched_that_is_not_ours_and_none_is_left_behind(part: Part, tmp_path: Path) -> None:
    build = watched(part, tmp_path)
    environment = os.environ | {
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=1:exitcode=0:abort_on_error=1:fast_unwind_on_malloc=0:malloc_context_size=9",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Python's own allocator would hide the ends of its objects.
        "PYTHONMALLOC": "malloc",
        "PYTEST_ADDOPTS": "",
    }
    command = [sys.executable, "-c", PROGRAM, part.module, str(build), *part.tests]
    ran = run(command, environment, tmp_path)
    assert " passed" in ran.stdout, ran.stdout + ran.stderr
    assert "failed" not in ran.stdout, ran.stdout
    assert ran.code == 0, ran.stdout[-2_000:] + ran.stderr[-8_000:]
    leaks = [each for each in ran.stderr.split("\n\n") if "leak of" in each and part.folder in each]
    assert leaks == []
