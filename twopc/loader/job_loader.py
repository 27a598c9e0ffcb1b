"""Loads a job from a Python file, and knows which modules came from the user's folder.

The file runs once, as a module, with its folder first on the path, as if Python had been started on it; except that
`__name__` is the file's, not `__main__`. A worker may not have that folder: a `JobText` takes the file, and the modules
that it may import, there as text, and is loaded there in the same way.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module, invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from socket import gethostname
from sysconfig import get_path
from traceback import extract_tb
from types import ModuleType

from twopc.errors import ConfigurationError
from twopc.graph import GraphBuilder, JobDefinition, JobOrigin
from twopc.loader.environment_reads import noted_reads
from twopc.loader.shipment import Shipment, shipment_of
from twopc.termination import TERMINATION

_being_loaded: ContextVar[str] = ContextVar("being_loaded", default="")
"""The job file that is being loaded just now, which must only define its job."""

_folders: set[Path] = set()
_environment: dict[str, str | None] = {}
_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = {
    _PACKAGE,
    _PACKAGE.with_name("coordinator"),
    *(Path(get_path(kind)).resolve() for kind in ("stdlib", "platstdlib")),
}


def load_job(spec: str) -> JobDefinition:
    """Return the job that `FILE.py` defines, or the one called NAME in it for `FILE.py:NAME`.

    A job file may go to another folder. This process stays where it is: relative names that a user gave are meant here.
    """
    path, name = _split(spec)
    folder = Path.cwd()
    with chdir(folder):
        module = _execute(path)
        working_folder = Path.cwd()
    try:
        definition = _choose(path, name, _jobs_in(module)).definition()
    except ConfigurationError as error:
        raise ConfigurationError(f"{path.name}: {error}") from error
    return replace(definition, origin=JobOrigin(module.__name__, path, folder, working_folder))


@contextmanager
def loaded_apart(spec: str) -> Iterator[JobDefinition]:
    """Give the job that a file defines, in its folder, and forget afterwards what was loaded from where its file is.

    So another version of the job, in another folder, loads its own modules, though they have the same names.
    """
    modules, path, folders = dict(sys.modules), list(sys.path), set(_folders)
    try:
        definition = load_job(spec)
        with in_its_folder(definition):
            yield definition
    finally:
        of_job = _folders | {_split(spec)[0].parent}
        for name, module in list(sys.modules.items()):
            if modules.get(name) is not module and _is_users(module, of_job):
                del sys.modules[name]
        sys.path[:] = path
        _folders.clear()
        _folders.update(folders)
        invalidate_caches()


@contextmanager
def in_its_folder(definition: JobDefinition | None) -> Iterator[None]:
    """Be meanwhile where the functions of a job belong that was loaded from a file, because its file went there."""
    origin = None if definition is None else definition.origin
    with nullcontext() if origin is None else chdir(origin.working_folder):
        yield


@dataclass(frozen=True, slots=True)
class JobText:
    """A job that was loaded from a file, as text: its module's name, that file, and all modules of its folder.

    `folder` is the one that it was loaded in, which is another where the command was started elsewhere.
    """

    job: str
    module: str
    path: Path
    shipment: Shipment
    folder: Path

    @classmethod
    def of(cls, definition: JobDefinition) -> JobText | None:
        """Return the text that this job was loaded from; None if it was made otherwise, or changed since."""
        if (origin := definition.origin) is None:
            return None
        return cls(definition.name, origin.module, origin.path, users_modules(), origin.folder)

    def load(self) -> JobDefinition:
        """Return the job, loaded in this process from the text, whatever is in its folders."""
        self.shipment.unpack()
        _look_first_in(self.path.parent)
        sys.modules.pop(self.module, None)
        with _elsewhere(), _loading(self.path):
            module = import_module(self.module)
        job = next((job for job in _jobs_in(module).values() if job.name == self.job), None)
        if job is None:
            raise ConfigurationError(
                f"{self.path.name} does not define job {self.job!r} where its subtasks run: a job's name must not "
                "depend on the machine"
            )
        return job.definition()


def refuse_while_loading() -> None:
    """Refuse what a job file may not do while it is only being loaded."""
    if path := _being_loaded.get():
        raise ConfigurationError(
            f"{path} runs its job while it is only being loaded: put job.run() under if __name__ == '__main__':"
        )


def users_modules(*more: Path) -> Shipment:
    """Return all modules in the folders of loaded job files, and those imported from more folders, as text."""
    folders = _folders | set(more)
    imported = [module for module in list(sys.modules.values()) if _is_users(module, folders)]
    return shipment_of(_folders, imported, _environment)


def _jobs_in(module: ModuleType) -> dict[str, GraphBuilder]:
    return {key: value for key, value in vars(module).items() if isinstance(value, GraphBuilder)}


def _look_first_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _split(spec: str) -> tuple[Path, str | None]:
    file, colon, name = spec.rpartition(":")
    if not (colon and name.isidentifier() and file.endswith(".py")):
        file, name = spec, ""
    path = Path(file)
    if path.suffix != ".py":
        raise ConfigurationError(f"{spec!r} is not a job file: give FILE.py, or FILE.py:NAME if there are several")
    if not path.is_file():
        raise ConfigurationError(f"there is no job file {file}")
    return path.resolve(), name or None


def _choose(path: Path, name: str | None, jobs: dict[str, GraphBuilder]) -> GraphBuilder:
    names = ", ".join(sorted(jobs))
    if name is not None:
        if name not in jobs:
            found = f"the jobs in it are {names}" if jobs else "there is none in it"
            raise ConfigurationError(f"the file doesn't define a job called {name}: {found}")
        return jobs[name]
    if not jobs:
        raise ConfigurationError("the file doesn't define a job: write job = Job('name') at its top level")
    if len({id(job) for job in jobs.values()}) > 1:
        example = sorted(jobs)[0]
        raise ConfigurationError(f"the file defines several jobs: choose one of {names}, as in {path.name}:{example}")
    return next(iter(jobs.values()))


def _execute(path: Path) -> ModuleType:
    module_name = _module_name(path)
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} can't be loaded as Python")
    module = module_from_spec(spec)
    _look_first_in(path.parent)
    sys.modules[module_name] = module
    try:
        with _loading(path), noted_reads(path.parent, _environment):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    _folders.add(path.parent)
    return module


def _module_name(path: Path) -> str:
    """Return the file's own name, unless another module has it: a job file json.py must not replace the real one."""
    name = re.sub(r"\W", "_", path.stem)
    there = sys.modules.get(name)
    taken = name in sys.stdlib_module_names or (there is not None and getattr(there, "__file__", None) != str(path))
    return f"job_{name}" if taken else name


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    """Make one clear error of whatever the file raises, with the line of the user's code where it did."""
    token = _being_loaded.set(path.name)
    try:
        yield
    except TERMINATION:
        # The process is told to end while the file runs: that is no fault of the file.
        raise
    except SyntaxError as error:
        file = Path(error.filename or path).name
        raise ConfigurationError(f"{file}:{error.lineno}: {type(error).__name__}: {error.msg}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{_line(path, error)}: {error}") from error
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{_line(path, error)}: {type(error).__name__}: {error}") from error
    finally:
        _being_loaded.reset(token)


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Name this machine in what is wrong with a file that could be loaded where the job was started."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error} (on {gethostname()}; where the job was started it could be loaded: modules that are not beside "
            "the job file have to be installed there too, or to come with --py-files; files that it reads have to be "
            "there under the same name)"
        ) from error


def _line(path: Path, error: BaseException) -> str:
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).parent == path.parent]
    return f"{path.name}" if not frames else f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"


def _is_users(module: ModuleType, folders: set[Path]) -> bool:
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py") or module.__name__ == "__main__":
        return False
    path = Path(file).resolve()
    # Of any environment, not only this one: a project's folder often holds its virtual environment.
    installed = {"site-packages", "dist-packages"} & set(path.parts) or any(base in path.parents for base in _INSTALLED)
    # What is in an archive has no file of its own: Spark takes the archive.
    return not installed and any(folder in path.parents for folder in folders) and path.is_file()
