"""Whatever a drill opens gets at the brokers as the job does, and what it writes and says holds no secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from twopc.bench.load import produce_all
from twopc.bench.plan import BenchPlan
from twopc.config import RunSettings
from twopc.drill.broker import delete_scratch_group
from twopc.drill.fault_drill_plan import FaultDrillPlan
from twopc.drill.job import DrillJob
from twopc.drill.restore import RestorePlan
from twopc.drill.scratch_job import PREFIX, Names, scratch_job, write_scratch_file
from twopc.drill.throttled_job import ThrottledSource, throttled_job, without_access
from twopc.errors import Unavailable
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.input.topic_reader import high_watermarks, read
from twopc.kafka.output.topic_writer import TopicWriter
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.loader.job_loader import load_job
from twopc.scratch.job_file import write_job_file
from twopc.verify.load import LoadPlan
from twopc.verify.load_producer import check
from twopc.verify.load_producer import produce as write_load
from twopc.verify.plan import plan_of

PASSWORD = "canary-password"
ACCESS = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "orders", "sasl.password": PASSWORD}
PLACE = TopicPartition("out", 0)
SMALL = BenchPlan(job_file="j", records=1_000)

JOB = f"""
from twopc import Job, KafkaSink, KafkaSource

access = {ACCESS!r}
job = Job("orders")
job.source(KafkaSource("in", properties={{**access, "fetch.min.bytes": 1}})).sink(
    KafkaSink("out", properties={{**access, "linger.ms": 7}})
)
"""


class Opened(Exception):
    """A client was opened with these settings."""


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch, forgotten_loads: None) -> None:
    """No client is opened; what it would be opened with is raised, but for the one that speaks the protocol itself."""

    def opened(config: dict[str, Any], *_: Any) -> None:
        raise Opened(config)

    for name in (
        "input.group.AdminClient",
        "input.topic_reader.Consumer",
        "input.topic_reader.KafkaReader",
        "output.topic_writer.Producer",
    ):
        monkeypatch.setattr(f"twopc.kafka.{name}", opened)


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    path = tmp_path / "orders_job.py"
    path.write_text(JOB)
    return str(path)


def cluster() -> Cluster:
    return Cluster("there:1", {**ACCESS, "linger.ms": 7})


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda: delete_scratch_group(cluster(), f"{PREFIX}group"), id="delete a group"),
        pytest.param(lambda: high_watermarks(cluster(), [PLACE]), id="ask for an end"),
        pytest.param(lambda: list(read(cluster(), {PLACE: (Position(0), Position(1))})), id="read"),
        pytest.param(lambda: produce_all(cluster(), "t", SMALL, [b""], 1), id="load"),
        pytest.param(lambda: TopicWriter(cluster()), id="copied load"),
    ],
)
def test_whatever_a_drill_opens_gets_at_the_brokers_as_the_job_does(act: Callable[[], object]) -> None:
    with pytest.raises(Opened) as opened:
        act()
    config = opened.value.args[0]
    assert config.items() >= {**ACCESS, "bootstrap.servers": "there:1"}.items()


def test_brokers_that_do_not_answer_are_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = MagicMock()
    silent.delete_consumer_groups.return_value.__getitem__.return_value.result.side_effect = TimeoutError()
    monkeypatch.setattr("twopc.kafka.input.group.AdminClient", lambda config: silent)
    with pytest.raises(Unavailable, match="no answer from"):
        delete_scratch_group(cluster(), f"{PREFIX}group")


def test_what_a_drill_asks_itself_it_asks_with_the_same_login(job_file: str) -> None:
    job = DrillJob.of(load_job(job_file), RunSettings(bootstrap_servers="there:1"), {})
    assert [each.properties for each in job.outputs.values()] == [ACCESS]
    assert [each.properties for each in job.inputs.values()] == [{**ACCESS, "fetch.min.bytes": 1}]


def test_a_job_keeps_its_login_in_a_scratch_run(job_file: str) -> None:
    throttled = throttled_job(job_file, name="n", rate=1.0, finish="f", own_broker=False).definition()
    slow = throttled.sources["source-1"]
    assert isinstance(slow, ThrottledSource)
    restored = KafkaConnectors.of(scratch_job(job_file, Names.fresh().name, []).definition())
    written = KafkaConnectors.of(throttled.replaced({"source-1": slow.source}))
    for connectors in (restored, written):
        assert connectors.sources["source-1"].properties.items() >= ACCESS.items()
        assert connectors.sinks["sink-1"].properties.items() >= ACCESS.items()


def test_a_broker_of_the_drills_own_is_not_asked_for_tls_or_a_login(job_file: str) -> None:
    connectors = KafkaConnectors.of(without_access(load_job(job_file)))
    source, sink = connectors.sources["source-1"], connectors.sinks["sink-1"]
    assert (source.properties, sink.properties) == ({"fetch.min.bytes": 1}, {"linger.ms": 7})


def test_what_is_written_for_a_run_and_what_is_told_of_a_plan_holds_no_secret(job_file: str, tmp_path: Path) -> None:
    throttled = write_job_file(tmp_path, throttled_job, job_file, name="n", rate=1.0, finish="f", own_broker=False)
    told = [Path(throttled).read_text()]
    told.append(Path(write_scratch_file(tmp_path, job_file, Names.fresh(), {})).read_text())
    told += [repr(RestorePlan("j", str(tmp_path), access=ACCESS)), repr(FaultDrillPlan("j", 1, 1, access=ACCESS))]
    told += [repr(plan_of(None, ["in"], ["out"], "s:1", access=ACCESS)), repr(Cluster("s:1", ACCESS))]
    assert not [text for text in told if PASSWORD in text]


def test_verifying_gets_at_both_topics_with_what_it_is_given(job_file: str) -> None:
    plan = plan_of(load_job(job_file), (), (), "s:1", access={"sasl.username": "auditor"})
    assert plan.inputs["source-1"].properties == {**ACCESS, "sasl.username": "auditor", "fetch.min.bytes": 1}
    assert [each.properties for each in plan.outputs.values()] == [{**ACCESS, "sasl.username": "auditor"}]


@pytest.mark.parametrize("act", [write_load, check])
def test_a_load_is_written_and_checked_with_the_same_login(
    act: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(servers: str, config: dict[str, Any]) -> None:
        raise Opened(config)

    monkeypatch.setattr("twopc.kafka.clients.cluster.TopicClient", asked)
    with pytest.raises(Opened) as opened:
        act(LoadPlan(topic="t", records=1), Cluster("s:1", ACCESS))
    assert opened.value.args[0] == ACCESS
