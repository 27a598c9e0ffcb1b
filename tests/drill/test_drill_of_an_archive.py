"""A restore drill takes what `twopc run` takes: an archive of a checkpoint, and states that are left behind."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

OLD = """
from twopc import Job, KafkaSink, KafkaSource


def count(total, value):
    return (total or 0) + 1, value


job = Job("{name}")
job.source(KafkaSource("{name}-in")).stateful_map(count, name="count").sink(KafkaSink("{name}-out"))
"""
NEW = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource("{name}-in")).sink(KafkaSink("{name}-out"))
"""


def checked(done: CommandResult) -> dict[str, str]:
    assert done.out, done.err
    return {each["name"]: each["verdict"] for each in json.loads(done.out)["checks"]}


@pytest.mark.proof
def test_an_archive_is_drilled_and_a_state_that_the_new_version_has_no_more_is_dropped(
    broker: Broker, tmp_path: Path
) -> None:
    servers, name = broker.bootstrap_servers, f"archived-{uuid.uuid4().hex[:6]}"
    old, new, archive = tmp_path / "old.py", tmp_path / "new.py", tmp_path / "saved.tar"
    old.write_text(OLD.format(name=name))
    new.write_text(NEW.format(name=name))
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}")
    where = ("--checkpoint-dir", str(tmp_path / "checkpoints"))
    common = ("-b", servers, "--host", "process", *where, "--checkpoint-interval", "200ms")
    for first in (0, 100):
        produce(servers, f"{name}-in", [Write(b"%d" % n, key=b"k%d" % (n % 7)) for n in range(first, first + 100)])
        ran = twopc("run", str(old), *common, "--until-end")
        assert ran.code == 0, ran.err
        if not first:
            copied = twopc("checkpoints", "copy", "latest", str(archive), *where)
            assert copied.code == 0, copied.err
    drill = ("drill", str(new), *common, "--from", str(archive), "-o", "json")
    refused = twopc(*drill)
    assert (refused.code, "--drop-states count" in json.loads(refused.out)["error"]) == (2, True), refused.out
    dropped = twopc(*drill, "--drop-states", "count")
    assert checked(dropped) == dict.fromkeys(("readable", "positions", "transactions", "replay", "output"), "held")
