"""What Spark is configured with: by the user, by an administrator, by us; without a JVM."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from twopc.cli.spark_options import spark_conf
from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.loader.job_loader import load_job, users_modules
from twopc.loader.py_files import use_py_files
from twopc.spark.configuration import ALWAYS, SparkConfiguration
from twopc.spark.master import SUBMITTED
from twopc.spark.session import SessionHolder

CLUSTER = "spark://10.0.0.5:7077"
YARN = {
    "spark.executor.instances": "4",
    "spark.executor.cores": "1",
    "spark.yarn.queue": "streams",
    "spark.yarn.jars": "local:/opt/spark/jars/*",
    "spark.executorEnv.AWS_ACCESS_KEY_ID": "key",
    "spark.yarn.appMasterEnv.TWOPC_CHECKPOINT_DIR": "s3://bucket/checkpoints",
    "spark.driver.host": "10.0.0.5",
}
KUBERNETES = {
    "spark.kubernetes.namespace": "streams",
    "spark.kubernetes.container.image": "registry.example/upper:1",
    "spark.kubernetes.driver.pod.name": "upper-0",
    "spark.executor.instances": "4",
    "spark.executor.cores": "1",
    "spark.driver.host": "upper-0.upper.streams.svc",
    "spark.driver.bindAddress": "0.0.0.0",
    "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoints.mount.path": "/checkpoints",
}


def nothing_set(_name: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("master", "conf"), [("yarn", YARN), ("k8s://https://HOST:443", KUBERNETES)], ids=["yarn", "k8s"]
)
def test_what_the_command_line_says_is_given_to_spark_as_it_starts(master: str, conf: dict[str, str]) -> None:
    given = spark_conf([f"{name}={value}" for name, value in conf.items()])
    settings = RunSettings.resolve(spark_conf=given, archives="env.tar.gz#env")
    launched = SparkConfiguration.of("upper", settings).at_launch(master)
    assert launched == conf | {
        "spark.master": master,
        "spark.app.name": "upper",
        "spark.archives": "env.tar.gz#env",
    }


def test_a_value_may_have_equals_signs() -> None:
    given = spark_conf(["spark.driver.extraJavaOptions=-Da=b -Dc=d"])
    assert given == {"spark.driver.extraJavaOptions": "-Da=b -Dc=d"}


def test_the_application_bears_the_jobs_name_unless_told_otherwise() -> None:
    assert SparkConfiguration("upper").at_launch(CLUSTER)["spark.app.name"] == "upper"
    renamed = SparkConfiguration("upper", {"spark.app.name": "shouting"})
    assert renamed.at_launch(CLUSTER)["spark.app.name"] == "shouting"


def test_the_pages_of_spark_are_off_under_a_local_master_only_and_where_nothing_is_said() -> None:
    configuration, off = SparkConfiguration("upper"), {"spark.ui.enabled": "false"}.items()
    assert off <= configuration.of_session("local[2]", nothing_set).items()
    assert not off <= configuration.of_session(CLUSTER, nothing_set).items()
    assert not off <= configuration.of_session("local[2]", lambda name: name == "spark.ui.enabled").items()


def test_what_a_job_needs_is_set_whatever_an_administrator_says() -> None:
    assert ALWAYS.items() <= SparkConfiguration("upper").of_session(CLUSTER, lambda _: True).items()


def test_slots_are_looked_for_every_second_unless_told_otherwise() -> None:
    interval = "spark.scheduler.barrier.maxConcurrentTasksCheck.interval"
    configuration = SparkConfiguration("upper")
    assert configuration.of_session(CLUSTER, nothing_set)[interval] == "1s"
    assert interval not in configuration.of_session(CLUSTER, lambda name: name == interval)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("spark.task.maxFailures", "4", "a job needs 1"),
        ("spark.master", "yarn", "give --master instead"),
        ("spark.submit.pyFiles", "a.zip", "give --py-files instead"),
        ("executor.memory", "1g", "does not begin with 'spark.'"),
    ],
)
def test_a_setting_that_can_not_be_kept_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--conf {name}: .*{said}"):
        SparkConfiguration("upper", {name: value})


def test_a_setting_that_says_what_a_job_needs_is_fine() -> None:
    SparkConfiguration("upper", {"spark.task.maxFailures": "1"})


@pytest.mark.parametrize("text", ["spark.executor.memory", "=1g"])
def test_a_setting_without_a_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--conf wants NAME=VALUE"):
        spark_conf([text])


@pytest.mark.parametrize("given", [{"spark_conf": {"spark.a": "b"}}, {"py_files": "a.zip"}, {"archives": "a.zip"}])
def test_what_is_for_spark_is_refused_on_another_host(given: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="are for Spark, and the host is 'process'"):
        RunSettings.resolve(host="process", **given)


def test_spark_submit_is_to_be_given_what_it_starts_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SUBMITTED, "1")
    with pytest.raises(ConfigurationError, match="by spark-submit, and can't be given --conf, --archives now"):
        SessionHolder(CLUSTER, SparkConfiguration("upper", {"spark.a": "b"}, archives="a.zip"))


def test_a_session_that_is_there_is_not_configured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    with pytest.raises(
        ConfigurationError, match=r"has a Spark session already.*--py-files now: give it to its builder"
    ):
        SessionHolder(CLUSTER, SparkConfiguration("upper", py_files="a.zip"))


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave no module behind."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.usefixtures("imports")
@pytest.mark.parametrize("packed", [True, False], ids=["zip", "py"])
def test_a_job_file_imports_what_py_files_name_and_they_do_not_travel_with_it(tmp_path: Path, packed: bool) -> None:
    module, text = f"outside_{packed}".lower(), "def shout(value):\n    return value.upper()\n"
    named = tmp_path / f"{module}.{'zip' if packed else 'py'}"
    if packed:
        with zipfile.ZipFile(named, "w") as archive:
            archive.writestr(f"{module}.py", text)
    else:
        (tmp_path / "elsewhere").mkdir()
        named = tmp_path / "elsewhere" / named.name
        named.write_text(text)
    job = tmp_path / "jobs" / f"job_with_{module}.py"
    job.parent.mkdir()
    job.write_text(
        f"from {module} import shout\nfrom twopc import Job, KafkaSink, KafkaSource\njob = Job('upper')\n"
        "job.source(KafkaSource('in')).map(shout).sink(KafkaSink('out'))\n"
    )
    use_py_files([str(named), "hdfs://elsewhere/more.zip"])
    assert load_job(str(job)).name == "upper"
    assert module not in users_modules(tmp_path if packed else job.parent).modules


def test_py_files_that_are_not_there_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"--py-files: there is no file nowhere\.zip"):
        use_py_files(["nowhere.zip"])
