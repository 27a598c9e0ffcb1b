"""Two versions of a job on one checkpoint of the job on a real broker: what both make of the input is compared."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from confluent_kafka.admin import AdminClient

from tests.checkpoints.damages import flip_bit
from tests.jobs.cli import CommandResult, twopc
from tests.stored_job import tree
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("version drill")]

BEFORE, SINCE, KEYS, PARTITIONS = 60, 90, 7, 2
JOB = """
from words import told

from twopc import Job, KafkaSink, KafkaSource


def count(total, value):
    total = (total or 0) + 1
    return total, told(total, value)


job = Job("{name}")
job.source(KafkaSource("{source}")).stateful_map(count, name="{state}").sink(KafkaSink("{sink}"))
"""
WORDS = 'def told(total, value):\n    return b"%s is number %d" % (value, total)\n'
ODD = f"{BEFORE + 40}"
"""The value of the record that versions disagree about: the 21st or so of its partition since the checkpoint."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The job of the checkpoint, and the folder in which each test puts another version."""

    servers: str
    name: str
    folder: Path
    too_early: CommandResult

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def old(self) -> Path:
        return self.folder / "old" / "job.py"

    def write(self, version: str, words: str = WORDS, **other: str) -> Path:
        """Write a version: both have a module `words` beside them, as versions in two clones have."""
        names = {"name": self.name, "source": f"{self.name}-in", "sink": f"{self.name}-out", "state": "count"} | other
        path = self.folder / version / "job.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(JOB.format(**names))
        path.with_name("words.py").write_text(words)
        return path

    def drill(self, other: Path, *more: str, job: Path | None = None) -> CommandResult:
        (self.folder / "scratch").mkdir(exist_ok=True)
        return twopc(
            *("drill", str(job or self.old), "--against", str(other), "-b", self.servers, "-o", "json"),
            *("--checkpoint-dir", str(self.checkpoints), "--scratch-dir", str(self.folder / "scratch"), *more),
        )


@pytest.fixture(scope="module")
def versions(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Versions:
    servers, name = broker.bootstrap_servers, f"versions-{uuid.uuid4().hex[:6]}"
    job = Versions(servers, name, tmp_path_factory.mktemp("versions"), CommandResult(0, "", ""))
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}", PARTITIONS)
    job.write("old")
    produce(servers, f"{name}-in", map(record, range(BEFORE)))
    common = ("-b", servers, "--host", "process", "--checkpoint-dir", str(job.checkpoints))
    ran = twopc("run", str(job.old), *common, "--checkpoint-interval", "200ms", "--until-end")
    assert ran.code == 0, ran.err
    too_early = job.drill(job.old)
    produce(servers, f"{name}-in", map(record, range(BEFORE, BEFORE + SINCE)))
    return Versions(servers, name, job.folder, too_early)


def record(number: int) -> Write:
    return Write(b"%d" % number, key=b"k%d" % (number % KEYS), partition=number % KEYS % PARTITIONS)


def result(done: CommandResult) -> Mapping[str, Any]:
    assert done.out, done.err
    body = json.loads(done.out)
    assert isinstance(body, dict)
    return body


def output_of(done: CommandResult) -> Mapping[str, Any]:
    (check,) = [each for each in result(done)["checks"] if each["name"] == "output"]
    assert isinstance(check, dict)
    return check


def place_of(versions: Versions, value: str) -> str:
    """Where the record of this value is in the input."""
    partition = int(value) % KEYS % PARTITIONS
    offset = sum(each % KEYS % PARTITIONS == partition for each in range(int(value)))
    return f"{versions.name}-in[{partition}]@{offset}"


def test_two_versions_that_make_the_same_from_the_state_of_the_checkpoint_hold(versions: Versions) -> None:
    other = versions.write("same", 'def told(total, value):\n    return value + f" is number {total}".encode()\n')
    done = versions.drill(other)
    assert done.code == 0, done.out + done.err
    figures = result(done)["figures"]
    assert figures["the same, records"] == figures["input, records"] == SINCE


def test_the_record_in_which_they_differ_is_named_with_its_key_and_both_values(versions: Versions) -> None:
    other = versions.write("odd", WORDS.replace("return ", f'return b"odd" if value == b"{ODD}" else '))
    junit = versions.folder / "version.xml"
    done = versions.drill(other, "--junit", str(junit))
    assert done.code == 1, done.out + done.err
    (finding,) = output_of(done)["findings"]
    key = f"k{int(ODD) % KEYS}"
    total = int(ODD) // KEYS + 1
    assert finding == (
        f"another value: {place_of(versions, ODD)}, key '{key}', to {versions.name}-out: {versions.old} makes value "
        f"'{ODD} is number {total}', {other} makes value 'odd'"
    )
    assert output_of(done)["text"].startswith("the versions differ: 1 with another value; ")
    assert [each.get("name") for each in Xml.parse(junit).iter("testcase") if each.find("failure") is not None] == [
        "output"
    ]


def test_a_record_on_which_only_one_version_fails_is_named(versions: Versions) -> None:
    other = versions.write("failing", WORDS.replace("return ", f'return 1 / 0 if value == b"{ODD}" else '))
    done = versions.drill(other)
    assert done.code == 1, done.out + done.err
    check = output_of(done)
    assert check["text"].startswith(f"{other} fails on a record that {versions.old} takes")
    (finding,) = check["findings"]
    assert place_of(versions, ODD) in finding
    assert "ZeroDivisionError" in finding


def test_where_both_fail_nothing_is_compared_and_both_records_are_named(versions: Versions) -> None:
    other = versions.write("both", WORDS.replace("return ", f'return 1 / 0 if value == b"{ODD}" else '))
    done = versions.drill(other, job=other)
    assert done.code == 2, done.out + done.err
    error = result(done)["error"]
    assert "there is no output to compare" in error
    assert error.count(place_of(versions, ODD)) == 2


def test_a_state_that_the_other_version_has_no_more_is_refused_unless_it_is_dropped(versions: Versions) -> None:
    other = versions.write("renamed", state="total")
    refused = versions.drill(other)
    assert refused.code == 2, refused.out + refused.err
    error = result(refused)["error"]
    assert error.startswith(f"{other}: ")
    assert "--drop-states count" in error
    dropped = versions.drill(other, "--drop-states", "count")
    assert dropped.code == 1, dropped.out + dropped.err
    assert f"{other} leaves count behind and begins total empty" in result(dropped)["checks"][0]["text"]
    assert result(dropped)["figures"]["with another value, records"] == SINCE


def test_another_output_topic_is_no_difference(versions: Versions) -> None:
    done = versions.drill(versions.write("elsewhere", sink=f"{versions.name}-v2"))
    assert done.code == 0, done.out + done.err


def test_a_version_that_reads_other_topics_is_refused_by_name(versions: Versions) -> None:
    done = versions.drill(versions.write("others", source=f"{versions.name}-v2"))
    assert done.code == 2
    assert "only versions that read the same topics" in result(done)["error"]


def test_a_checkpoint_behind_which_nothing_stands_is_not_compared(versions: Versions) -> None:
    assert versions.too_early.code == 2
    assert "name an older one with --from" in result(versions.too_early)["error"]


def test_a_damaged_checkpoint_is_named_and_nothing_is_compared(versions: Versions) -> None:
    damaged = versions.folder / "damaged"
    shutil.copytree(versions.checkpoints, damaged)
    newest = max(damaged.glob("*/chk-*"), key=lambda folder: int(folder.name.removeprefix("chk-")))
    flip_bit(newest / "metadata.json")
    done = versions.drill(versions.old, "--checkpoint-dir", str(damaged))
    assert done.code == 2, done.out + done.err
    assert f"{newest.name}/metadata.json" in result(done)["error"]


def test_nothing_of_the_job_or_the_broker_is_changed(versions: Versions) -> None:
    def look() -> tuple[object, ...]:
        admin = AdminClient({"bootstrap.servers": versions.servers})
        groups = {each.group_id for each in admin.list_consumer_groups().result(60).valid}
        return tree(versions.checkpoints), set(admin.list_topics(timeout=60).topics), groups

    before = look()
    assert versions.drill(versions.write("again")).code == 0
    assert look() == before
    assert list((versions.folder / "scratch").iterdir()) == []
