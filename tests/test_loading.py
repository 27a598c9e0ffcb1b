from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from twopc import loading
from twopc.errors import ConfigurationError
from twopc.loading import by_value_modules, load_job

SINK_AND_SOURCE = """
from twopc.job import Job
from twopc.sink import TwoPhaseCommitSink
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
def write(tmp_path: Path) -> Iterator[Write]:
    """Write files into a folder of job files; forget its modules afterwards."""
    before = set(sys.modules), list(sys.path), set(loading._folders)
    loading._folders.clear()

    def write_file(name: str, content: str) -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return str(file)

    yield write_file
    for name in set(sys.modules) - before[0]:
        del sys.modules[name]
    sys.path[:] = before[1]
    loading._folders.clear()
    loading._folders.update(before[2])


def test_the_one_job_of_a_file_is_found(write: Write) -> None:
    definition = load_job(write("words_job.py", JOB))
    assert (definition.name, [str(step) for step in definition.steps]) == ("words", ["map(len)"])


def test_two_names_of_one_job_are_one_job(write: Write) -> None:
    assert load_job(write("words_job.py", JOB + "again = job\n")).name == "words"


def test_one_of_several_jobs_is_chosen_by_its_name_in_the_file(write: Write) -> None:
    assert load_job(write("words_job.py", TWO_JOBS) + ":other").name == "others"


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
    assert "job_json" in [module.__name__ for module in by_value_modules()]


def test_everything_from_the_folder_of_the_job_travels_by_value(write: Write) -> None:
    write("words_table/__init__.py", "from words_table import rows\n")
    write("words_table/rows.py", "ROWS = [1]\n")
    installed = Path(write("venv/lib/site-packages/words_installed.py", "")).parent
    imports = f"import sys\nsys.path.append({str(installed)!r})\nimport words_table, words_installed\n"
    load_job(write("words_job.py", imports + JOB))
    assert sorted(module.__name__ for module in by_value_modules()) == ["words_job", "words_table", "words_table.rows"]
