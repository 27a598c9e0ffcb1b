"""The settings of a run, as one frozen value that is checked when it is made.

Every setting can come from a keyword of `Job.run`, a command-line option, or the environment (`TWOPC_` and the name in
capitals); that order, first found wins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.logs import FORMATS, LEVELS
from twopc.protocol.attempts import CheckpointSettings
from twopc.storage.open import absolute_place, open_store
from twopc.variables import PREFIX, name_unknown

NO_TIMEOUT_MS = 2_147_483_647
"""What a broker takes for no limit: as transaction.max.timeout.ms, and as a transaction's time-out for never."""

INLINE_BYTES_MAX = 64 * 1024
"""The most that `twopc.state.changes` takes account of."""

INLINE_BYTES_ALTOGETHER = 512 * 1024
"""The most of all subtasks of a job: the metadata is written whole with every checkpoint, and kept in memory."""

PORT_MAX = 65_535

MAX_TIME_AHEAD_MS = 86_400_000
"""Unless a run says otherwise: more than clocks and time zones are wrong by."""

_AT_LEAST_ONE = (
    "parallelism",
    "checkpoint_interval_ms",
    "checkpoint_timeout_ms",
    "heartbeat_timeout_ms",
    "restart_delay_ms",
    "batch_records_min",
)

_BOUNDS = (("restart_delay_ms", "restart_delay_max_ms"), ("batch_records_min", "batch_records_max"))

_PATHS = ("kafka_config", "checkpoint_dir", "coordinator_ca", "coordinator_cert", "coordinator_key")
"""What is used where the driver runs, or on all machines under one path."""

RESTART_STRATEGIES = ("exponential-delay", "fixed-delay", "none")
"""After a failure: see `twopc.driver.restart`."""

_ONE_OF = {
    "host": ("spark", "process", "inline"),
    "restart_strategy": RESTART_STRATEGIES,
    "log_level": LEVELS,
    "log_format": FORMATS,
}


def require_assertions() -> None:
    """Raise ConfigurationError where Python leaves assertions out: they stop a job before it writes what is wrong."""
    if not __debug__:
        raise ConfigurationError("twopc needs its assertions: run it without python -O, and unset PYTHONOPTIMIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run. Durations are milliseconds.

    bootstrap_servers: host:port, comma-separated, of the Kafka brokers; a source or sink may name its own.
    kafka_config: a file of lines NAME=VALUE that say how to get at the brokers, in the names of librdkafka; the driver
        reads it. kafka_properties: the same as values. Job, source and sink may set their own, which go before.
    checkpoint_dir: the folder that holds the checkpoints of all jobs, each under its name; or a URL, of an object
        store too.
    parallelism: the number of subtasks.
    checkpoint_interval_ms, checkpoint_timeout_ms, checkpoint_min_pause_ms: as in Flink's execution.checkpointing.*.
    checkpoint_max_concurrent: how many checkpoints may be in flight; a minimum pause implies 1, as in Flink.
    checkpoint_tolerable_failures: how many checkpoints in a row may fail before the attempt does; savepoints count not.
    checkpoint_inline_bytes: a subtask's state of at most so many bytes, positions included, stands in the checkpoint's
        metadata and needs no files; as Flink's execution.checkpointing.data-inline-threshold. 0 puts all in files. Of
        many subtasks each has its share of 512 KiB, if that is less.
    heartbeat_timeout_ms: how long a subtask may be silent, its stream to the coordinator gone, before its attempt
        fails; as Flink's heartbeat.timeout. That a stream is gone is noticed within 20 s. To attach for the first time,
        once another has, it has a minute at least.
    checkpoints_retained: how many of the newest completed checkpoints are kept, besides savepoints and those that a
        recovery may need.
    restore_from: "latest", "none", or a checkpoint or savepoint (its id, its label, or the path of where it is).
    accept_loss: names of committables, comma-separated, whose output a person gives up for good: the error that says
        that they are lost, and can't be written again, names them.
    drop_states: ids of operators, comma-separated, of which the restored checkpoint has state that the job no longer
        declares: it is deleted. Without it such a checkpoint is refused, because a renamed state would begin empty.
    drop_inputs: names of topics, comma-separated, that the restored checkpoint stands in and the job no longer reads:
        their positions are given up. Without it such a checkpoint is refused.
    accept_gap: input that was deleted before it was read, or lost by brokers after, and that a person gives up:
        TOPIC[PARTITION]@FROM-TO, comma-separated, as the error that says what is gone names it. All states and other
        positions stay.
    batch_records_min, batch_records_max: how many records go through the functions at once: few while they are slow, so
        that a checkpoint need not wait, unless smaller batches take as long. A greater minimum for functions that want
        many at once. Unset, the maximum is 1,000; 8,000 while records go through as columns, without an object each.
    max_task_idle_ms: where several topics meet by key, how long the records of one wait for another that has nothing
        more to read just now, so that the earlier record goes first; as Kafka Streams' max.task.idle.ms.
    set_time_back: stream time that the restored checkpoint has further ahead of the clock than max_time_ahead_ms is set
        to the clock, and all state is kept.
    max_time_ahead_ms: how far ahead of the clock a record may move stream time. One that would move it further follows
        on_error and moves nothing: the others would be late, what has a ttl gone, and every timer due.
    until_end: read to the ends found at the start, take a last checkpoint, commit, exit.
    host: "spark"; "process" (each subtask a plain process on this machine, no JVM); or "inline" (one subtask, in the
        thread that runs the job: for breakpoints and notebooks).
    master: Spark's master URL. Unset, it is spark-submit's, else local[*]. A session that this process has already is
        used as it is, whatever its master.
    spark_conf: Spark's own settings by their names, for a session of our own. py_files: files with modules that the
        job imports and its folder does not have, as spark-submit's --py-files; archives: what is unpacked where each
        subtask runs, as its --archives. Both comma-separated.
    coordinator: host:port of a coordinator to dial; None embeds one in the driver.
    coordinator_token: the bearer token of that coordinator; give it through TWOPC_COORDINATOR_TOKEN, so that no process
        list shows it.
    coordinator_ca, coordinator_cert, coordinator_key: PEM files for a coordinator with TLS: whom the job trusts, and
        who the driver is. worker_cert, worker_key: who a worker is, on its own machine; unset, it is as the driver.
    restart_strategy, restart_attempts, restart_delay_ms, restart_delay_max_ms: what to do after a failure, as Flink's
        restart-strategy.*: at most that many restarts in a row, after delays that grow from the one to the other.
    transaction_timeout_ms: for Kafka transactions; None takes the longest that the broker allows.
    metrics_port, metrics_host: where the driver serves metrics for Prometheus, and its health; None for nowhere, port 0
        for a free one. Who reaches the address may read them.
    traces: whether the driver sends one trace a checkpoint by OpenTelemetry (`twopc-streams[otel]`), to where
        OTEL_EXPORTER_OTLP_ENDPOINT says.
    log_level, log_format: what the workers write to standard error ("debug", "info", "warning", "error"), and how
        ("text", "json"); `twopc run` writes its own lines in the same way.
    """

    bootstrap_servers: str = ""
    kafka_config: str = ""
    kafka_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    checkpoint_dir: str = "checkpoints"
    parallelism: int = 1
    checkpoint_interval_ms: int = 1_000
    checkpoint_timeout_ms: int = 60_000
    checkpoint_min_pause_ms: int = 0
    checkpoint_max_concurrent: int = 1
    checkpoint_tolerable_failures: int = 3
    checkpoint_inline_bytes: int = 20 * 1024
    heartbeat_timeout_ms: int = 30_000
    checkpoints_retained: int = 3
    restore_from: str = "latest"
    accept_loss: str = ""
    drop_states: str = ""
    drop_inputs: str = ""
    accept_gap: str = ""
    batch_records_min: int = 1
    batch_records_max: int | None = None
    max_task_idle_ms: int = 0
    max_time_ahead_ms: int = MAX_TIME_AHEAD_MS
    set_time_back: bool = False
    until_end: bool = False
    host: str = "spark"
    master: str = ""
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    py_files: str = ""
    archives: str = ""
    coordinator: str | None = None
    coordinator_token: str = field(default="", repr=False)
    coordinator_ca: str = ""
    coordinator_cert: str = ""
    coordinator_key: str = ""
    worker_cert: str = ""
    worker_key: str = ""
    transaction_timeout_ms: int | None = None
    restart_strategy: str = "exponential-delay"
    restart_attempts: int = 10
    restart_delay_ms: int = 100
    restart_delay_max_ms: int = 30_000
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    traces: bool = False
    log_level: str = "info"
    log_format: str = "text"

    def __post_init__(self) -> None:
        require_assertions()
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, but is {getattr(self, name)}")
        for name in ("checkpoint_min_pause_ms", "max_task_idle_ms", "max_time_ahead_ms", "restart_attempts"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"{name} can't be negative, but is {getattr(self, name)}")
        if not 0 <= self.checkpoint_inline_bytes <= INLINE_BYTES_MAX:
            raise ConfigurationError(
                f"checkpoint_inline_bytes must be from 0 to {INLINE_BYTES_MAX}, but is {self.checkpoint_inline_bytes}: "
                "larger state belongs in files"
            )
        if self.metrics_port is not None and not 0 <= self.metrics_port <= PORT_MAX:
            raise ConfigurationError(f"metrics_port must be from 0 to {PORT_MAX}, but is {self.metrics_port}")
        self.checkpoint_settings()
        for name, values in _ONE_OF.items():
            if (value := getattr(self, name)) not in values:
                raise ConfigurationError(f"{name} must be one of {', '.join(values)}, but is {value!r}")
        self._check_bounds()
        self._check_host()
        if not self.checkpoint_dir:
            raise ConfigurationError("checkpoint_dir is empty: name a folder for the checkpoints (--checkpoint-dir)")
        self._root_paths()
        open_store(self.checkpoint_dir)

    def _root_paths(self) -> None:
        """Make paths absolute: a job may change its working folder, and workers have another one."""
        for name in _PATHS:
            if path := getattr(self, name):
                object.__setattr__(self, name, absolute_place(path))

    def _check_bounds(self) -> None:
        for least, most in _BOUNDS:
            if getattr(self, most) is not None and getattr(self, most) < getattr(self, least):
                raise ConfigurationError(f"{most} can't be smaller than {least}, which is {getattr(self, least)}")

    def _check_host(self) -> None:
        if self.host != "spark" and (self.spark_conf or self.py_files or self.archives):
            raise ConfigurationError(
                f"spark_conf, py_files and archives are for Spark, and the host is {self.host!r}: leave them out "
                "(--conf, --py-files, --archives), or use --host spark"
            )

    def inline_bytes(self, parallelism: int) -> int:
        """The greatest size of a subtask's state in the metadata, for so many subtasks."""
        return min(self.checkpoint_inline_bytes, INLINE_BYTES_ALTOGETHER // parallelism)

    def checkpoint_settings(self) -> CheckpointSettings:
        """The settings that the coordinator needs, checked."""
        return CheckpointSettings(
            interval_ms=self.checkpoint_interval_ms,
            timeout_ms=self.checkpoint_timeout_ms,
            min_pause_ms=self.checkpoint_min_pause_ms,
            max_concurrent=self.checkpoint_max_concurrent,
            tolerable_failures=self.checkpoint_tolerable_failures,
            retained=self.checkpoints_retained,
        )

    def dropped_states(self) -> frozenset[str]:
        """The names in `drop_states`."""
        return _listed(self.drop_states)

    def dropped_inputs(self) -> frozenset[str]:
        """The names in `drop_inputs`."""
        return _listed(self.drop_inputs)

    @classmethod
    def resolve(cls, **given: Any) -> RunSettings:
        """Return the settings for these keywords, and for the others from the environment or their defaults.

        None counts as not given. `checkpoint_interval="2s"` is `checkpoint_interval_ms=2000`, and so for every
        duration; `from` is another name of restore_from, because the command line calls it that.
        """
        types = {declared.name: str(declared.type) for declared in fields(cls)}
        variables = _variables(types)
        name_unknown(variables)
        # An empty variable is how a shell or a compose file says "not set".
        inherited = [(key, name, text) for key, name in variables.items() if (text := os.environ.get(key))]
        explicit = [(name, name, value) for name, value in given.items() if value is not None]
        return cls(**_chosen(inherited, types) | _chosen(explicit, types))


_OTHER_NAMES = {"from": "restore_from"}
_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_EXPECTED = {"int": "a whole number", "bool": "true or false", "str": "text", "Mapping[str, str]": "values by name"}


def _listed(names: str) -> frozenset[str]:
    return frozenset(name.strip() for name in names.split(",") if name.strip())


def name_unknown_variables() -> None:
    """Warn of variables of the environment that look like a setting and are none."""
    name_unknown(_variables({declared.name: str(declared.type) for declared in fields(RunSettings)}))


def _variables(types: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each setting by the variable that it may be given in."""
    return {PREFIX + name.upper(): name for name in _names(types)}


def _names(types: Mapping[str, str]) -> list[str]:
    """Return every name that a setting may be given under."""
    return [*types, *(name.removesuffix("_ms") for name in types if name.endswith("_ms")), *_OTHER_NAMES]


def _chosen(given: list[tuple[str, str, Any]], types: Mapping[str, str]) -> dict[str, Any]:
    """Return checked values by field, from (what the user wrote it as, its name, its value)."""
    values: dict[str, Any] = {}
    written: dict[str, str] = {}
    for called, name, value in given:
        setting = _setting(name, types)
        if setting in written:
            raise ConfigurationError(f"{written[setting]} and {called} say the same thing: give one of them")
        written[setting] = called
        values[setting] = _value(called, value, "duration" if setting == f"{name}_ms" else types[setting])
    return values


def _setting(name: str, types: Mapping[str, str]) -> str:
    for candidate in (name, f"{name}_ms", _OTHER_NAMES.get(name, "")):
        if candidate in types:
            return candidate
    near = get_close_matches(name, _names(types), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(types))}"
    raise ConfigurationError(f"there is no setting {name!r}: {hint}")


def _value(called: str, value: Any, kind: str) -> Any:
    """Return the value as its field wants it: text, as the environment has it, is read as a number or a switch."""
    wanted = kind.removesuffix(" | None")
    try:
        if wanted == "duration":
            return duration_ms(value)
        if isinstance(value, str) and wanted in ("int", "bool"):
            return int(value) if wanted == "int" else _SWITCH[value.strip().lower()]
    except (ValueError, KeyError) as error:
        reason = error if wanted == "duration" else f"{value!r} is not {_EXPECTED[wanted]}"
        raise ConfigurationError(f"{called}: {reason}") from error
    if wanted.startswith("Mapping") and isinstance(value, Mapping):
        return dict(value)
    if type(value).__name__ != wanted:
        raise ConfigurationError(f"{called}: {value!r} is not {_EXPECTED[wanted]}")
    return value
