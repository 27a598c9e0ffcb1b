"""Refuses a wheel that lacks what is compiled: where the compiler fails, a build goes on without it."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]


def missing_in(wheel: Path) -> list[str]:
    """Return the compiled modules of the project that are not in the wheel."""
    modules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"]
    names = ZipFile(wheel).namelist()
    paths = [each["name"].replace(".", "/") for each in modules]
    return [path for path in paths if not any(name.startswith(f"{path}.") and name.endswith(".so") for name in names)]


def main(folder: Path) -> int:
    """Look into the newest wheel of a folder; return 1 where it lacks a part."""
    wheel = max(folder.glob("*.whl"), key=lambda each: each.stat().st_mtime)
    if missing := missing_in(wheel):
        print(f"wheel: {wheel} lacks {', '.join(missing)}: the compiler failed (see make setup)", file=sys.stderr)
        return 1
    print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
