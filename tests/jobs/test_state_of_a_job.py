"""What `twopc state` reads is what a job counted: two real runs, of different parallelism, and their checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tests.jobs.cli import twopc
from twopc.inspect import open_checkpoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, delete_topic, produce, read_topic

JOB = Path(__file__).parents[2] / "examples" / "count_by_key.py"
pytestmark = pytest.mark.broker


def run(broker: Broker, checkpoints: Path, parallelism: int) -> None:
    finished = twopc(
        *("run", str(JOB), "--bootstrap-servers", broker.bootstrap_servers, "--checkpoint-dir", str(checkpoints)),
        # However slow the machine is, the last checkpoint of the first run is there after the second.
        *("--host", "process", "--parallelism", str(parallelism), "--until-end", "--checkpoints-retained", "50"),
    )
    assert finished.code == 0, finished.err


def refused(broker: Broker, checkpoints: Path, folder: Path, declaration: str) -> str:
    """Run the job with another declaration of its state; return what is said."""
    job = folder / "changed.py"
    job.write_text(JOB.read_text().replace('name="count"', declaration))
    finished = twopc(
        *("run", str(job), "--bootstrap-servers", broker.bootstrap_servers, "--checkpoint-dir", str(checkpoints)),
        *("--host", "process", "--until-end"),
    )
    assert finished.code == 2, finished.err
    return finished.err


def state(checkpoints: Path, *arguments: str, code: int = 0) -> Any:
    finished = twopc("state", *arguments, "--checkpoint-dir", str(checkpoints), "-o", "json")
    assert finished.code == code, finished.err
    return json.loads(finished.out)


def test_the_state_of_a_job_is_read_and_compared_from_outside(broker: Broker, tmp_path: Path) -> None:
    checkpoints, servers = tmp_path / "checkpoints", broker.bootstrap_servers
    for topic in ("in", "out"):
        create_topic(servers, topic, 2)
    try:
        produce(servers, "in", [Write(b"x", key=b"k%d" % (number % 5)) for number in range(500)])
        run(broker, checkpoints, 2)
        with open_checkpoint(checkpoint_dir=checkpoints) as opened:
            first = opened.checkpoint_id
        produce(servers, "in", [Write(b"x", key=b"k3"), Write(b"x", key=b"new")])
        run(broker, checkpoints, 1)
        renamed = refused(broker, checkpoints, tmp_path, 'name="tally"')
        encoded = refused(broker, checkpoints, tmp_path, 'name="count", state=__import__("twopc").String()')
        counted: dict[str, int] = {}
        for record in read_topic(servers, "out"):
            key = (record.key or b"").decode()
            counted[key] = max(counted.get(key, 0), int(record.value or b"0"))
    finally:
        for topic in ("in", "out"):
            delete_topic(servers, topic)

    assert "--drop-states count" in renamed
    assert "as Json wrote it, and the job declares String" in encoded
    assert {row["key"]: row["value"] for row in state(checkpoints, "scan", "latest", "count")} == counted
    changes = state(checkpoints, "diff", str(first), "latest", code=1)["changes"]
    assert {(each["key"], json.dumps(each["old"]), json.dumps(each["new"])) for each in changes} == {
        ("k3", '{"value": 100}', '{"value": 101}'),
        ("new", "null", '{"value": 1}'),
    }
    exported = tmp_path / "counts.parquet"
    assert state(checkpoints, "export", "latest", "--to", str(exported))["rows"] == 6
    rows = parquet.read_table(exported).to_pylist()
    assert {row["key"]: json.loads(row["value"]) for row in rows} == counted
