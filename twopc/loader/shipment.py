"""Modules of the user's that travel to a worker as source text, and are imported there as if they were files.

A worker may be on a machine that has none of them. They are executed there, not unpickled, so whatever a module makes
when it is imported, a lock, a connection, a class that protoc generated, is made where it is used. Tracebacks and
`__file__` name the files that they came from.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

MOST_BYTES = 16 * 1024 * 1024
"""Of the files beside a job: where there are more, only those travel that were imported before it is sent."""


@dataclass(frozen=True, slots=True)
class ModuleText:
    """One module: where its file is, and what stands in it."""

    path: str
    text: bytes = field(repr=False)

    @property
    def is_package(self) -> bool:
        return Path(self.path).name == "__init__.py"


@dataclass(frozen=True, slots=True)
class Shipment:
    """Modules by name, and what the environment said to them when they were loaded; None where it said nothing."""

    modules: Mapping[str, ModuleText]
    environment: Mapping[str, str | None] = field(default_factory=dict, repr=False)

    def unpack(self) -> None:
        """Have this process import these modules, executed anew, and none of an earlier shipment."""
        for finder in [entry for entry in sys.meta_path if isinstance(entry, _Finder)]:
            sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if isinstance(getattr(module, "__loader__", None), _TextLoader):
                del sys.modules[name]
        for name, value in self.environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        # Before what is installed, as with the folder of a script; after what Python has built in.
        sys.meta_path.insert(_place(), _Finder(self.modules))


def shipment_of(
    folders: Iterable[Path], imported: Iterable[ModuleType], environment: Mapping[str, str | None]
) -> Shipment:
    """Return the modules that were imported, and those that can be imported from the folders, if they are not many."""
    modules = {module.__name__: _read(Path(str(module.__file__))) for module in imported}
    beside = {name: path for folder in folders for name, path in _importable(folder) if name not in modules}
    if sum(path.stat().st_size for path in beside.values()) <= MOST_BYTES:
        modules |= {name: _read(path) for name, path in beside.items()}
    return Shipment(modules, environment)


def _read(path: Path) -> ModuleText:
    return ModuleText(str(path), path.read_bytes())


def _importable(folder: Path, prefix: str = "") -> Iterable[tuple[str, Path]]:
    """Yield the modules of a folder, and of the packages in it."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py" and path.stem.isidentifier() and path.is_file():
            yield (prefix.removesuffix(".") if path.stem == "__init__" else prefix + path.stem), path
        elif path.name.isidentifier() and (path / "__init__.py").is_file():
            yield from _importable(path, f"{prefix}{path.name}.")


class _TextLoader(SourceLoader):
    """Executes a module's text; writes no bytecode."""

    def __init__(self, module: ModuleText) -> None:
        self._module = module

    def get_filename(self, fullname: str) -> str:
        return self._module.path

    def get_data(self, path: str | bytes) -> bytes:
        if path != self._module.path:
            raise FileNotFoundError(path)
        return self._module.text


class _Finder(MetaPathFinder):
    """Finds the modules of one shipment, and the folders between them that are no packages."""

    def __init__(self, modules: Mapping[str, ModuleText]) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = self._modules.get(fullname)
        if module is not None:
            inside = [str(Path(module.path).parent)] if module.is_package else None
            loader = _TextLoader(module)
            return spec_from_file_location(fullname, module.path, loader=loader, submodule_search_locations=inside)
        if any(name.startswith(f"{fullname}.") for name in self._modules):
            between = ModuleSpec(fullname, None, is_package=True)
            between.submodule_search_locations = []
            return between
        return None


def _place() -> int:
    return next((index for index, entry in enumerate(sys.meta_path) if entry is PathFinder), len(sys.meta_path))
