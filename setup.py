"""Builds the compiled parts with a mark of the sources that they were built from; all else is in pyproject.toml."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
# By its path: an environment that only builds has neither this package nor what it needs.
mark_of = runpy.run_path(str(ROOT / "twopc" / "build_mark.py"))["mark_of"]


class MarkedBuild(build_ext):
    """Adds a source with the mark to each part, which always is built anew: a change of the mark is no newer file."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.force = True

    def build_extension(self, ext: Extension) -> None:
        """Build one part."""
        made = Path(self.build_temp) / f"{ext.name}-mark.c"
        made.parent.mkdir(parents=True, exist_ok=True)
        mark = mark_of(ROOT / Path(ext.sources[0]).parent)
        made.write_text(f'__attribute__((used)) static const char mark[] = "{mark}";\n')
        ext.sources.append(str(made))
        super().build_extension(ext)


setup(cmdclass={"build_ext": MarkedBuild})
