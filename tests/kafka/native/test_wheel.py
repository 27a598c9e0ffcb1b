"""The wheel has what is compiled, and whoever installs it needs no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

# It needs no broker, and takes as long as those that do.
pytestmark = [pytest.mark.broker, pytest.mark.proof]

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
ASK = """
import twopc.build_mark as b, twopc.compiled as c
import twopc.kafka.native as n, twopc.operators.loops as l, twopc.serde._avro as a
print(b.__file__, n._found()[0].__file__, n.in_use(), l.loops().__file__, a.__file__, sep='|')
assert not c.problems(), c.problems()
assert b.MARK.encode() in open(a.__file__, 'rb').read()
"""


def build_environment(folder: Path) -> list[str]:
    """Make an environment with setuptools and nothing else, as pip's isolated builds have; return the pip of it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "build")], check=True, timeout=120)
    [site] = (folder / "build").glob("lib/python*/site-packages")
    shutil.rmtree(site / "setuptools", ignore_errors=True)
    shutil.copytree(Path(sysconfig.get_path("purelib")) / "setuptools", site / "setuptools")
    return [str(folder / "build" / "bin" / "python"), *OPTIONS]


def test_a_wheel_that_was_built_elsewhere_brings_the_compiled_part_for_every_python(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    # A copy: a build leaves files behind.
    source, wheels, site = tmp_path / "source", tmp_path / "wheels", tmp_path / "site"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in ("twopc", "coordinator"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    build = [*build_environment(tmp_path), "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(wheels), str(source)], check=True, timeout=300)
    (wheel,) = wheels.iterdir()
    assert "-cp311-abi3-" in wheel.name
    without_compiler = os.environ | {"PATH": str(tmp_path), "CC": "none"}
    install = [sys.executable, *OPTIONS, "install", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, env=without_compiler, check=True, timeout=300)
    asked = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=tmp_path,
        env=without_compiler | {"PYTHONPATH": str(site), "TWOPC_NATIVE": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    package, module, said, *others = asked.stdout.strip().split("|")
    assert all(Path(each).is_relative_to(site) for each in (package, module, *others))
    assert said == "compiled, by batches"
