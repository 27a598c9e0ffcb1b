from __future__ import annotations

import importlib
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.registry.access import URL_VARIABLE
from twopc.loader.job_loader import JobText, in_its_folder, load_job, loaded_apart
from twopc.operators import Map
from twopc.termination import Terminated

SINK_AND_SOURCE = """
from twopc.job import Job
from twopc.two_phase import TwoPhaseCommitSink
from twopc.source import Source

class Nothing(Source):
    plan = open = None
Nothing.__abstractmethods__ = frozenset()

class Nowhere(TwoPhaseCommitSink):
    pass
Nowhere.__abstractmethods__ = frozenset()
"""
JOB = SINK_AND_SOURCE + "job = Job('words')\njob.source(Nothing()).map(len).sink(Nowhere())\n"
TWO_JOBS = JOB + "other = Job('others')\nother.source(Nothing()).sink(Nowhere())\n"

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, forgotten_loads: None) -> Iterator[Write]:
    """Write files into a folder of job files; forget its modules afterwards."""
    before = set(sys.modules), list(sys.path), list(sys.meta_path)

    def write_file(name: str, content: str) -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return str(file)

    yield write_file
    for name in set(sys.modules) - before[0]:
        del sys.modules[name]
    sys.path[:] = before[1]
    sys.meta_path[:] = before[2]


def test_the_one_job_of_a_file_is_found(write: Write) -> None:
    definition = load_job(write("words_job.py", JOB))
    assert (definition.name, [str(step) for step in definition.steps.values()]) == ("words", ["map(len)"])


def test_two_names_of_one_job_are_one_job(write: Write) -> None:
    assert load_job(write("words_job.py", JOB + "again = job\n")).name == "words"


def test_one_of_several_jobs_is_chosen_by_its_name_in_the_file(write: Write) -> None:
    assert load_job(write("words_job.py", TWO_JOBS) + ":other").name == "others"


def test_a_process_that_is_told_to_end_while_the_file_runs_ends_by_that(write: Write) -> None:
    with pytest.raises(Terminated):
        load_job(write("words_job.py", "from twopc.termination import Terminated\nraise Terminated(143)\n"))


@pytest.mark.parametrize(
    ("content", "suffix", "complaint"),
    [
        ("x = 1\n", "", r"words_job.py: the file doesn't define a job: write job = Job\('name'\)"),
        (TWO_JOBS, "", r"the file defines several jobs: choose one of job, other, as in words_job.py:job"),
        (TWO_JOBS, ":third", "doesn't define a job called third: the jobs in it are job, other"),
        ("x = 1\n", ":third", "doesn't define a job called third: there is none in it"),
        ("x = 1\ny = = 2\n", "", "words_job.py:2: SyntaxError: invalid syntax"),
        ("x = 1\n\nprint(1 / 0)\n", "", "words_job.py:3: ZeroDivisionError: division by zero"),
        ("import not_installed\n", "", "words_job.py:1: ModuleNotFoundError: No module named 'not_installed'"),
        ("import sys\nsys.exit(3)\n", "", "words_job.py:2: SystemExit: 3"),
        ("from twopc.job import Job\nJob('no good')\n", "", "words_job.py:2: job name 'no good' can't be used"),
        (SINK_AND_SOURCE + "job = Job('words')\n", "", "words_job.py: job 'words' has no source"),
        (JOB + "job.run()\n", "", r"words_job.py runs its job while it is only being loaded: put job.run\(\) under"),
    ],
)
def test_a_file_that_can_not_be_used_gets_one_clear_message(
    write: Write, content: str, suffix: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        load_job(write("words_job.py", content) + suffix)


def test_an_error_in_a_module_beside_the_job_names_the_line_of_that_module(write: Write) -> None:
    write("words_helper.py", "\nraise RuntimeError('no table')\n")
    with pytest.raises(ConfigurationError, match=r"words_helper\.py:2: RuntimeError: no table"):
        load_job(write("words_job.py", "import words_helper\n" + JOB))


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [("missing.py", "there is no job file missing.py"), ("words", "'words' is not a job file: give FILE.py")],
)
def test_what_is_not_a_file_is_said_to_be_none(spec: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        load_job(spec)


def test_a_file_that_failed_can_be_corrected_and_loaded_again(write: Write) -> None:
    with pytest.raises(ConfigurationError):
        load_job(write("words_job.py", "1 / 0\n"))
    assert "words_job" not in sys.modules
    assert load_job(write("words_job.py", JOB + "# corrected\n")).name == "words"


def test_a_guarded_run_is_not_run(write: Write) -> None:
    assert load_job(write("words_job.py", JOB + "if __name__ == '__main__':\n    job.run()\n")).name == "words"


def test_a_job_file_does_not_replace_a_module_of_the_same_name(write: Write) -> None:
    import json

    load_job(write("json.py", JOB))
    assert sys.modules["json"] is json


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Callable[[JobDefinition], JobDefinition]]:
    """Load a job as a worker does that has none of its files and variables, only what travels."""

    def load(definition: JobDefinition) -> JobDefinition:
        text = JobText.of(definition)
        assert text is not None
        shutil.rmtree(tmp_path)
        for name in [name for name in sys.modules if name.startswith("words_")]:
            del sys.modules[name]
        monkeypatch.delenv("WORDS_SUFFIX", raising=False)
        importlib.invalidate_caches()
        sent: JobText = pickle.loads(pickle.dumps(text))
        return sent.load()

    with pytest.MonkeyPatch.context() as monkeypatch:
        yield load


def applied(definition: JobDefinition, value: str) -> object:
    (step,) = definition.steps.values()
    assert isinstance(step, Map)
    return step.function(value)


def test_a_job_travels_with_the_modules_of_its_folder_those_too_that_it_imports_late(
    write: Write, elsewhere: Callable[[JobDefinition], JobDefinition]
) -> None:
    write("words_deep/__init__.py", "")
    write("words_deep/inner/__init__.py", "")
    write("words_deep/inner/late.py", "def end(value):\n    return value + '?'\n")
    write("words_table.py", "ROWS = ['!']\n")
    function = """
import words_table

def shout(value):
    from words_deep.inner.late import end
    return end(value) + words_table.ROWS[0]
"""
    definition = load_job(write("words_job.py", function + JOB.replace("len", "shout")))
    assert applied(elsewhere(definition), "a") == "a?!"


def test_a_job_is_loaded_from_its_text_however_it_gets_at_its_brokers(write: Write) -> None:
    definition = load_job(write("words_job.py", JOB))
    assert JobText.of(definition.with_access({"security.protocol": "SSL"})) is not None


def test_a_job_that_was_changed_since_it_was_loaded_is_not_loaded_again_as_it_was(write: Write) -> None:
    loaded = load_job(write("words_job.py", JOB))
    assert JobText.of(loaded.replaced({"map-1": Map(str)})) is None


def test_what_a_module_makes_when_it_is_imported_is_made_where_the_job_runs(
    write: Write, elsewhere: Callable[[JobDefinition], JobDefinition]
) -> None:
    function = """
import threading
LOCK = threading.Lock()

def guarded(value):
    with LOCK:
        return value
"""
    definition = load_job(write("words_job.py", function + JOB.replace("len", "guarded")))
    assert applied(elsewhere(definition), "a") == "a"


def test_the_environment_that_a_job_file_was_loaded_with_travels_too(
    write: Write, elsewhere: Callable[[JobDefinition], JobDefinition], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORDS_SUFFIX", "!")
    function = "import os\nSUFFIX = os.environ['WORDS_SUFFIX']\ndef end(value):\n    return value + SUFFIX\n"
    definition = load_job(write("words_job.py", function + JOB.replace("len", "end")))
    assert applied(elsewhere(definition), "a") == "a!"


def test_where_the_environment_says_that_the_registry_is_travels_too(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL_VARIABLE, "http://127.0.0.1:8081")
    text = JobText.of(load_job(write("words_job.py", "import twopc\ntwopc.SchemaRegistry()\n" + JOB)))
    assert text is not None
    assert text.shipment.environment[URL_VARIABLE] == "http://127.0.0.1:8081"


def test_a_module_that_does_not_travel_is_named_with_the_line_that_imports_it(
    write: Write, elsewhere: Callable[[JobDefinition], JobDefinition], tmp_path: Path
) -> None:
    outside = Path(write("site-packages/words_outside.py", "")).parent
    imports = f"import sys\nsys.path.append({str(outside)!r})\nimport words_outside\n"
    definition = load_job(write("words_job.py", imports + JOB))
    with pytest.raises(ConfigurationError, match=r"words_job\.py:3: ModuleNotFoundError: No module named 'words_outs"):
        elsewhere(definition)


def test_a_job_that_has_another_name_where_it_runs_is_refused(
    write: Write, elsewhere: Callable[[JobDefinition], JobDefinition]
) -> None:
    named = JOB.replace("'words'", "'words' if Path(__file__).exists() else 'others'")
    definition = load_job(write("words_job.py", "from pathlib import Path\n" + named))
    with pytest.raises(ConfigurationError, match="does not define job 'words' where its subtasks run"):
        elsewhere(definition)


def test_versions_that_are_loaded_apart_have_each_their_own_module_of_one_name(write: Write) -> None:
    asking = SINK_AND_SOURCE + (
        "from helper import NAME\n\ndef ask(value):\n    import helper\n    return helper.NAME\n\n"
        "job = Job(NAME)\njob.source(Nothing()).map(ask).sink(Nowhere())\n"
    )
    known, path = set(sys.modules), list(sys.path)
    answers = []
    for version in ("old", "new"):
        write(f"{version}/helper.py", f"NAME = {version!r}\n")
        with loaded_apart(write(f"{version}/asking_job.py", asking)) as definition:
            (step,) = definition.steps.values()
            assert isinstance(step, Map)
            answers += [definition.name, step.function(b"")]
    assert answers == ["old", "old", "new", "new"]
    assert not {"helper", "asking_job", "job_asking_job"} & (set(sys.modules) - known)
    assert sys.path == path


GOES_AWAY = "import os\nfrom pathlib import Path\nENDS = Path('end').read_text()\nos.chdir('/')\n"


def test_a_job_that_goes_to_another_folder_takes_nobody_there_but_its_functions(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("jobs/words_job.py", GOES_AWAY + JOB)
    write("end", "!")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        definition = load_job("jobs/words_job.py")
        assert Path.cwd() == tmp_path
        with in_its_folder(definition):
            assert Path.cwd() == Path("/")
        assert Path.cwd() == tmp_path


def test_a_job_begins_where_its_run_was_started_if_that_is_there_on_the_worker_too(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("end", "!")
    monkeypatch.chdir(tmp_path)
    text = JobText.of(load_job(write("jobs/words_job.py", GOES_AWAY + JOB)))
    assert text is not None
    assert text.folder == tmp_path
