"""What keeps the tree readable, where no linter looks: sizes, docstrings, leftovers, names that must not be written."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import twopc
from twopc import connect

# The process that plays these parses every module once.
pytestmark = pytest.mark.xdist_group("tidy")

ROOT = Path(__file__).resolve().parents[1]
SOURCE_FOLDERS = ("twopc", "coordinator", "tests", "examples", "scripts", "benchmarks")
PACKAGES = ("twopc", "coordinator")

MODULE_LINES_MAX = 400
# Of the body: the signature of a command is a table of its options, as long as the options are many.
FUNCTION_LINES_MAX = 60

# The brackets keep each pattern from finding itself in this file.
LEFTOVER = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b")
PLACE_OF_ONE_MACHINE = re.compile(r"(?<![\w.*>})])/(home|Users|root|work|tmp/w)/\w")
# The name that every SVG must have for its elements is no link.
LINK_TO_A_HOST = re.compile(r"https?://(?!127\.0\.0\.1|localhost|HOST|\{|www\.w3\.org/2000/svg\b)[\w.-]+")
NAME_OF_A_HOST = re.compile(r"(?<![\w./-])(?!example\.)[\w-]+(\.[\w-]+)*\.(org|com|net|dev|io)\b(?![.(\w])")

KAFKAS_WORD = re.compile(r"(^|_)(topic|offset)s?(_|$)|(Topic|Offset)s?(?=[A-Z]|$)")
OF_KAFKA = (
    "twopc/kafka/",
    "twopc/verify/",
    "twopc/drill/",
    "twopc/bench/",
    "twopc/scratch/",
    "twopc/testing/",
    "twopc/cli/",
    "twopc/spark/streaming/",
    "twopc/ui/",
)
ALLOWED_WORDS = {
    "twopc/__init__.py": {"NewTopic", "StartingOffsets"},
    # Where a record came from: part of the public API, and named so by both Kafka clients.
    "twopc/record.py": {"topic", "offset"},
    "twopc/stand_ins.py": {"topic", "offset"},
    # What every framework calls the shift of windows.
    "twopc/windows.py": {"offset"},
    "twopc/operators/local_clock.py": {"utcoffset"},
    "twopc/column_rows.py": {"topic", "offset"},
    "twopc/column.py": {"topic", "offset"},
    "twopc/operators/records.py": {"topic", "offset"},
    "twopc/operators/process.py": {"topic", "offset"},
    "twopc/processor.py": {"topic", "offset"},
    # Whose keys or values a serde works for: Kafka Streams' word too.
    "twopc/serde/base.py": {"topic"},
    # Where an element of a column begins: Arrow's word.
    "twopc/packed_column.py": {"offsets", "_OFFSET"},
    "twopc/arrow.py": {"offset", "offsets"},
    # A byte of an archive.
    "twopc/checkpoints/archive.py": {"offset"},
}

PICKLERS = {"pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"}

PUBLIC_NAMES = [
    "Avro",
    "Batch",
    "Bytes",
    "ConfigurationError",
    "Context",
    "DeadLetter",
    "DeliveryGuarantee",
    "Double",
    "Fail",
    "Float",
    "Hopping",
    "Int",
    "Job",
    "Json",
    "KafkaSink",
    "KafkaSource",
    "ListState",
    "Long",
    "MapState",
    "NewTopic",
    "Processor",
    "Protobuf",
    "Record",
    "SchemaReference",
    "SchemaRegistry",
    "Serde",
    "Session",
    "Skip",
    "Sliding",
    "StartingOffsets",
    "Stream",
    "String",
    "Table",
    "Tumbling",
    "UserCodeError",
    "ValueState",
    "Window",
    "WindowedStream",
    "WindowedTable",
]
CONNECTOR_NAMES = [
    "CheckpointId",
    "Committable",
    "Committer",
    "Complete",
    "ErrorPolicy",
    "ErrorStage",
    "Follower",
    "FollowerStanding",
    "GlobalCommitter",
    "HeaderSerde",
    "JobContext",
    "JobDefinition",
    "Outcome",
    "PreCommit",
    "RecordError",
    "RecordsRefused",
    "Row",
    "RunSettings",
    "SerdeContext",
    "Settled",
    "SharedTransaction",
    "Sink",
    "SinkWriter",
    "Source",
    "SourcePlanner",
    "SourceReader",
    "Split",
    "SplitPosition",
    "SubtaskContext",
    "Traces",
    "TwoPhaseCommitSink",
    "Witnessed",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in modules()}
    assert {module: length for module, length in lengths.items() if length > MODULE_LINES_MAX} == {}


def test_every_function_fits_a_screen() -> None:
    assert found(modules(), long_functions) == []


def test_every_module_says_what_it_is_for() -> None:
    ours = [path for path in modules() if path.relative_to(ROOT).parts[0] != "tests" and path.read_text().strip()]
    assert [name(path) for path in ours if not ast.get_docstring(tree(path))] == []


def test_nothing_of_ours_pickles_but_the_task_that_spark_carries() -> None:
    ours = [path for path in modules() if path.relative_to(ROOT).parts[0] in PACKAGES]
    assert found(ours, imports_of_picklers) == []


def test_nothing_of_ours_waits_with_a_time_out_at_a_simple_queue() -> None:
    # CPython: a signal whose handler outlasts the time-out makes SimpleQueue.get wait for ever. queue.Queue does not.
    ours = [path for path in modules() if path.relative_to(ROOT).parts[0] in PACKAGES]
    simple = [path for path in ours if "SimpleQueue(" in path.read_text()]
    assert [name(path) for path in simple if re.search(r"\.get\([^)]*timeout", path.read_text())] == []


def test_what_is_not_of_kafka_names_no_topic_and_no_offset() -> None:
    ours = [path for path in modules() if path.relative_to(ROOT).parts[0] in PACKAGES]
    assert found([path for path in ours if not name(path).startswith(OF_KAFKA)], kafkas_words) == []


def test_the_public_names_change_only_on_purpose() -> None:
    assert sorted(twopc.__all__) == PUBLIC_NAMES
    assert sorted(connect.__all__) == CONNECTOR_NAMES


@pytest.mark.parametrize("public", PUBLIC_NAMES)
def test_every_public_name_is_there(public: str) -> None:
    assert getattr(twopc, public).__name__ == public


def test_every_dependency_has_its_reason_in_a_decision() -> None:
    decisions = "\n".join(path.read_text() for path in (ROOT / "docs" / "decisions").glob("*.md")).lower()
    assert [package for package in dependencies() if not re.search(rf"(?<![\w-]){package}(?![\w-])", decisions)] == []


def test_every_dependency_of_ours_has_a_door() -> None:
    ours = [path for path in modules() if path.relative_to(ROOT).parts[0] in PACKAGES]
    foreign = {package for path in ours for package in imported_packages(path)} - sys.stdlib_module_names
    behind_doors = {package for packages, _ in doors().values() for package in packages}
    assert foreign - behind_doors - set(PACKAGES) == set()


def test_the_table_of_doors_is_that_of_the_import_contracts() -> None:
    rows = [
        f"| {title} | {', '.join(f'`{package}`' for package in packages)} | "
        f"{', '.join(f'`{importer}`' for importer in importers)} |"
        for title, (packages, importers) in doors().items()
    ]
    table = (
        (ROOT / "docs" / "architecture.md")
        .read_text()
        .partition("| door | to | may be imported in |\n|---|---|---|\n")[2]
    )
    assert table.split("\n\n")[0].splitlines() == rows


def test_nothing_is_left_for_later() -> None:
    assert matches(LEFTOVER) == []


def test_no_file_names_a_place_of_one_machine() -> None:
    assert matches(PLACE_OF_ONE_MACHINE) == []


def test_no_file_links_to_a_host() -> None:
    assert matches(LINK_TO_A_HOST) == []


def test_no_file_names_a_host() -> None:
    assert matches(NAME_OF_A_HOST) == []


def test_the_lock_has_a_hash_for_every_package_and_no_address() -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip())
    assert [entry.split()[0] for entry in entries if not re.match(r"\S+==\S+.*\\\n    --hash=sha256:", entry)] == []


def doors() -> dict[str, tuple[list[str], list[str]]]:
    """Of each heavy dependency, by the title of its contract, its packages and who may import them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {
        contract["name"].removeprefix("the door of "): (contract["protected_modules"], contract["allowed_importers"])
        for contract in contracts
        if contract["name"].startswith("the door of ")
    }


def imported_packages(path: Path) -> Iterator[str]:
    """Yield the top-level package of everything that a module imports, wherever in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@cache
def modules() -> tuple[Path, ...]:
    """Every module that a person wrote."""
    paths = (path for folder in SOURCE_FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return tuple(path for path in paths if not path.stem.endswith(("_pb2", "_pb2_grpc")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def found(paths: Iterable[Path], search: Callable[[Path], Iterator[str]]) -> list[str]:
    return [f"{name(path)}: {what}" for path in paths for what in search(path)]


def long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, Function):
            first, last = node.body[0], node.body[-1]
            length = (last.end_lineno or last.lineno) - first.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{node.name} has {length} lines"


def kafkas_words(path: Path) -> Iterator[str]:
    words = {word for word in identifiers(path) if KAFKAS_WORD.search(word)}
    yield from sorted(words - ALLOWED_WORDS.get(name(path), set()))


def identifiers(path: Path) -> Iterator[str]:
    """Yield every name that a module gives or uses."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
                yield word
            case ast.alias(name=word, asname=other):
                yield other or word


def imports_of_picklers(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        else:
            continue
        for imported in names:
            by_spark = imported.startswith("pyspark.cloudpickle") and path.is_relative_to(ROOT / "twopc" / "spark")
            if PICKLERS & set(imported.split(".")) and not by_spark:
                yield f"imports {imported}"


def dependencies() -> list[str]:
    """What pyproject.toml asks for, but for ourselves and the type stubs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    names = {re.split(r"[^\w-]", requirement)[0].lower() for requirement in required}
    return sorted(each for each in names - {project["name"]} if "stubs" not in each and not each.startswith("types-"))


def matches(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern is found in the text files of the repository."""
    return [
        f"{path}:{number}: {match.group()}"
        for path in text_files()
        for number, line in enumerate((ROOT / path).read_text().splitlines(), start=1)
        for match in pattern.finditer(line)
    ]


@cache
def text_files() -> tuple[str, ...]:
    """What is committed or could be, but for the words of others: the licence."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout: no telling what is committed")
    paths = {path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()}
    return tuple(sorted(path for path in paths - {"LICENSE"} if b"\0" not in (ROOT / path).read_bytes()))


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*_sink.py")), ids=lambda path: path.stem)
def test_a_sink_of_a_users_own_imports_only_what_is_public(example: Path) -> None:
    imports = re.findall(r"^(?:from|import) (twopc[\w.]*)", example.read_text(), re.MULTILINE)
    assert set(imports) <= {"twopc", "twopc.connect", "twopc.errors"}
