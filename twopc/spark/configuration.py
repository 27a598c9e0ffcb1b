"""The configuration of Spark for a job: its user's, and where that says nothing, what runs a job best. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.spark.master import is_local

DYNAMIC_ALLOCATION = "spark.dynamicAllocation.enabled"

ALWAYS = {
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "20s",
    "spark.python.task.killTimeout": "200ms",
    "spark.task.maxFailures": "1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    DYNAMIC_ALLOCATION: "false",
    "spark.ui.showConsoleProgress": "false",
}
"""The settings that a job needs. Barrier stages can't have dynamic allocation."""

UNLESS_SET = {
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "300",
}
"""The settings that the user's own may override. Spark looks for slots every 15 s unless told otherwise."""

LOCAL_UNLESS_SET = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""The same where all of Spark is on this machine, in one process that ends with the job: nobody looks at its pages."""

PY_FILES, ARCHIVES = "spark.submit.pyFiles", "spark.archives"

LAY_FILES = (ARCHIVES, "spark.files", "spark.yarn.dist.archives", "spark.yarn.dist.files")
"""The settings that lay files into the folder in which an executor begins, where a job finds them by relative names."""

HAVE_OPTIONS = {"spark.master": "--master", PY_FILES: "--py-files", ARCHIVES: "--archives"}


@dataclass(frozen=True, slots=True)
class SparkConfiguration:
    """The demands of a job and its user on Spark, checked when they are made: before a JVM starts."""

    application: str
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    py_files: str = ""
    archives: str = ""

    def __post_init__(self) -> None:
        for name, value in self.conf.items():
            if not name.startswith("spark."):
                raise ConfigurationError(
                    f"--conf {name}: Spark reads no setting whose name does not begin with 'spark.'"
                )
            if (option := HAVE_OPTIONS.get(name)) is not None:
                raise ConfigurationError(f"--conf {name}: give {option} instead")
            if value != ALWAYS.get(name, value):
                raise ConfigurationError(
                    f"--conf {name}: a job needs {ALWAYS[name]}, which is set for it; leave it out"
                )

    @classmethod
    def of(cls, job: str, settings: RunSettings) -> SparkConfiguration:
        """Return what the settings of a run say of Spark; the application bears the job's name."""
        return cls(job, settings.spark_conf, ",".join(settings.py_files), ",".join(settings.archives))

    @property
    def given(self) -> str:
        """The options that say more than the job's name, for a person; "" if there are none."""
        options = {"--conf": self.conf, "--py-files": self.py_files, "--archives": self.archives}
        return ", ".join(option for option, value in options.items() if value)

    def at_launch(self, master: str) -> dict[str, str]:
        """The configuration of the JVM: memory, packages and a cluster's manager count only at its start."""
        travels = {PY_FILES: self.py_files, ARCHIVES: self.archives}
        named = {"spark.master": master, "spark.app.name": self.application}
        return {**named, **self.conf, **{name: files for name, files in travels.items() if files}}

    def of_session(self, master: str, is_set: Callable[[str], bool]) -> dict[str, str]:
        """The configuration of a session, once the JVM says what the user, or the machine's administrator, has set."""
        wanted = UNLESS_SET | (LOCAL_UNLESS_SET if is_local(master) else {})
        return ALWAYS | {name: value for name, value in wanted.items() if not is_set(name)}
