"""A job goes on from a savepoint that was carried elsewhere: state, positions and output agree, on a real broker."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, delete_topic, produce, read_topic

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.broker


def test_a_job_goes_on_from_an_archive_after_its_checkpoint_folder_was_deleted(broker: Broker, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    for topic in ("in", "out"):
        create_topic(servers, topic, 2)
    common = ("--bootstrap-servers", servers, "--parallelism", "2", "--host", "process", "--until-end")
    try:
        produce(servers, "in", [Write(b"x", key=b"k%d" % (number % 7)) for number in range(700)])
        first = twopc("run", str(EXAMPLES / "count_by_key.py"), *common, "--checkpoint-dir", str(tmp_path / "first"))
        assert first.code == 0, first.err
        copied = twopc(
            "checkpoints", "copy", "latest", str(tmp_path / "copy.tar"), "--checkpoint-dir", str(tmp_path / "first")
        )
        assert copied.code == 0, copied.err
        shutil.rmtree(tmp_path / "first")
        produce(servers, "in", [Write(b"x", key=b"k%d" % (number % 7)) for number in range(700)])
        second = twopc(
            *("run", str(EXAMPLES / "count_by_key.py"), *common),
            *("--checkpoint-dir", str(tmp_path / "second"), "--from", str(tmp_path / "copy.tar")),
        )
        assert second.code == 0, second.err
        counts: dict[bytes | None, list[int]] = defaultdict(list)
        for record in read_topic(servers, "out"):
            counts[record.key].append(int(record.value or b"0"))
        assert counts == {b"k%d" % key: list(range(1, 201)) for key in range(7)}
        verified = twopc("checkpoints", "verify", "--checkpoint-dir", str(tmp_path / "second"))
        assert verified.code == 0, verified.err
    finally:
        for topic in ("in", "out"):
            delete_topic(servers, topic)
