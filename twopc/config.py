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
from twopc.protocol.attempts import MOST_CONCURRENT, CheckpointSettings
from twopc.setting import setting, settings_of
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

HOSTS = ("spark", "process", "inline")


def require_assertions() -> None:
    """Raise ConfigurationError where Python leaves assertions out: they stop a job before it writes what is wrong."""
    if not __debug__:
        raise ConfigurationError("twopc needs its assertions: run it without python -O, and unset PYTHONOPTIMIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run. Durations are milliseconds.

    Each says itself what it is. Besides: Flink's execution.checkpointing.*, heartbeat.timeout and restart-strategy.*
    mean the same; that a stream is gone is noticed within 20 s, and a subtask has a minute at least to attach for the
    first time, once another has. `checkpoint_inline_bytes` is of a subtask, positions included; of many subtasks each
    has its share of 512 KiB, if that is less. `kafka_properties` are what `kafka_config` has, as values; job, source
    and sink may set their own, which go before. A session of Spark that this process has already is used as it is,
    whatever `master` says. `worker_cert` and `worker_key` are on the worker's own machine.
    """

    bootstrap_servers: str = setting("", "Kafka, HOST:PORT[,...].", short="-b")
    kafka_config: str = setting(
        "",
        "Lines of NAME=VALUE that say how to get at the brokers: security.protocol, sasl.username, ...",
        metavar="FILE",
    )
    kafka_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    checkpoint_dir: str = setting("checkpoints", "Where checkpoints are kept: a folder, or a URL, s3://... say.")
    parallelism: int = setting(1, "Number of subtasks.", short="-p")
    checkpoint_interval_ms: int = setting(1_000, "Time between checkpoints, as 500ms, 2s, 1m.", default="1s")
    checkpoint_timeout_ms: int = setting(60_000, "A checkpoint that takes longer is aborted.", default="1m")
    checkpoint_min_pause_ms: int = setting(0, "Least time from one checkpoint's end to the next.", default="0")
    checkpoint_max_concurrent: int = setting(
        1, f"How many checkpoints may be in flight, at most {MOST_CONCURRENT}; 1 with a minimum pause."
    )
    checkpoint_tolerable_failures: int = setting(3, "How many checkpoints in a row may fail before the attempt does.")
    checkpoint_inline_bytes: int = setting(
        20 * 1024, "State of a subtask up to this size stands in the metadata instead of files; 0: always files."
    )
    heartbeat_timeout_ms: int = setting(
        30_000,
        "A subtask that is silent for longer fails its attempt: it froze, or is cut off.",
        default="30s",
    )
    checkpoints_retained: int = setting(
        3, "How many completed checkpoints are kept, besides savepoints and what a recovery may need."
    )
    batch_records_min: int = setting(1, "Least records to give to the functions at once, however slow they are.")
    batch_records_max: int | None = setting(
        None,
        "Most records to give to the functions at once, however fast they are.",
        default="1000; 8000 of columns",
    )
    max_task_idle_ms: int = setting(
        0, "Where topics meet by key, how long one waits for another that has nothing to read.", default="0"
    )
    max_time_ahead_ms: int = setting(
        MAX_TIME_AHEAD_MS,
        "How far ahead of the clock a record may move stream time; beyond it follows on_error.",
        default="24h",
    )
    set_time_back: bool = setting(
        False, "Set stream time that is further ahead than that to the clock, and keep the state."
    )
    master: str = setting("", "Spark's master.", default="spark-submit's, else local[*]")
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    py_files: tuple[str, ...] = setting(
        (),
        "Modules that the job imports and its folder does not have: .py, .zip, .whl (comma-separated).",
        metavar="FILES",
    )
    archives: tuple[str, ...] = setting(
        (), "Archives that are unpacked where each subtask runs, FILE#FOLDER (comma-separated).", metavar="FILES"
    )
    host: str = setting(
        "spark",
        "Where subtasks run: spark, process (no JVM), or inline (one, in this process: for breakpoints).",
        choices=HOSTS,
    )
    coordinator: str | None = setting(
        None, "HOST:PORT of a coordinator to dial instead of an embedded one.", default="one inside the driver"
    )
    coordinator_token: str = setting("", "The bearer token of that coordinator.", option=None, secret=True)
    coordinator_ca: str = setting("", "Who signs the coordinator's certificate, PEM: use TLS.", metavar="FILE")
    coordinator_cert: str = setting("", "The certificate to show to it, PEM.", metavar="FILE")
    coordinator_key: str = setting("", "The key of that certificate, PEM.", metavar="FILE")
    worker_cert: str = setting("", "The certificate of a worker, PEM.", option=None, default="the driver's")
    worker_key: str = setting("", "The key of that certificate, PEM.", option=None, default="the driver's")
    restore_from: str = setting(
        "latest", "latest, none, or a checkpoint or savepoint: id, label, or path (of an archive too).", option="--from"
    )
    accept_loss: tuple[str, ...] = setting(
        (),
        "Go on without the output of these lost transactions (comma-separated, as the error names them).",
        metavar="NAMES",
    )
    drop_states: tuple[str, ...] = setting(
        (),
        "Delete the state of these operators, which the job no longer declares (comma-separated).",
        metavar="NAMES",
    )
    drop_inputs: tuple[str, ...] = setting(
        (), "Give up the positions in these topics, which the job no longer reads (comma-separated).", metavar="TOPICS"
    )
    accept_gap: tuple[str, ...] = setting(
        (),
        "Go on without input that was deleted before it was read, or lost since (comma-separated).",
        metavar="TOPIC[P]@FROM-TO",
    )
    restart_strategy: str = setting(
        "exponential-delay",
        "After a failure: exponential-delay, fixed-delay or none.",
        choices=RESTART_STRATEGIES,
    )
    restart_attempts: int = setting(10, "Restarts in a row before giving up.")
    restart_delay_ms: int = setting(100, "The first delay before a restart.", default="100ms", option=None)
    restart_delay_max_ms: int = setting(30_000, "The longest delay before a restart.", default="30s", option=None)
    transaction_timeout_ms: int | None = setting(
        None, "For Kafka transactions.", default="the longest that the broker allows", option=None
    )
    until_end: bool = setting(False, "Read to the end offsets found at the start, then exit.")
    metrics_port: int | None = setting(
        None, "Serve /metrics (Prometheus), /healthz and /readyz here; 0 takes a free port."
    )
    metrics_host: str = setting("127.0.0.1", "The address to serve them on: whoever reaches it may read them.")
    ui_port: int | None = setting(
        None, "Serve a page that shows the job here, for a browser, and metrics too; 0 takes a free port."
    )
    ui_host: str = setting("127.0.0.1", "The address to serve it on; beyond loopback TWOPC_UI_TOKEN must be set.")
    ui_token: str = setting("", "The token that opens that page.", option=None, secret=True)
    traces: bool = setting(
        False,
        "Send one trace a checkpoint by OpenTelemetry, to OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra otel.",
    )
    otlp_metrics: bool = setting(
        False,
        "Send metrics by OpenTelemetry, to OTEL_EXPORTER_OTLP_ENDPOINT once a minute; needs the extra otel.",
    )
    log_level: str = setting("info", "What goes to standard error: debug, info, warning or error.", choices=LEVELS)
    log_format: str = setting("text", "How it is written: text, or json, an object a line.", choices=FORMATS)

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
        self.checkpoint_settings()
        for name, each in settings_of(type(self)).items():
            if each.choices and (value := getattr(self, name)) not in each.choices:
                raise ConfigurationError(f"{name} must be one of {', '.join(each.choices)}, but is {value!r}")
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
        for name in ("metrics_port", "ui_port"):
            port = getattr(self, name)
            if port is not None and not 0 <= port <= PORT_MAX:
                raise ConfigurationError(f"{name} must be from 0 to {PORT_MAX}, but is {port}")
        for least, most in _BOUNDS:
            if getattr(self, most) is not None and getattr(self, most) < getattr(self, least):
                raise ConfigurationError(f"{most} can't be smaller than {least}, which is {getattr(self, least)}")

    def _check_host(self) -> None:
        if self.host != "spark" and (self.spark_conf or self.py_files or self.archives):
            raise ConfigurationError(
                f"spark_conf, py_files and archives are for Spark, and the host is {self.host!r}: leave them out "
                "(--conf, --py-files, --archives), or use --host spark"
            )

    def told(self) -> dict[str, str]:
        """Return every setting as people are shown it, by its name; nothing that is secret."""
        shown = {name: getattr(self, name) for name, each in settings_of(type(self)).items() if not each.is_secret}
        values = {name: ", ".join(value) if isinstance(value, tuple) else str(value) for name, value in shown.items()}
        # What is at a name may be secret.
        return values | {"kafka_properties": ", ".join(sorted(self.kafka_properties))}

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

    @classmethod
    def resolve(cls, **given: Any) -> RunSettings:
        """Return the settings for these keywords, and for the others from the environment or their defaults.

        None counts as not given. `checkpoint_interval="2s"` is `checkpoint_interval_ms=2000`, and so for every
        duration. Several values are a list, or text with commas between them.
        """
        types = {declared.name: str(declared.type) for declared in fields(cls)}
        variables = _variables(types)
        name_unknown(variables)
        # An empty variable is how a shell or a compose file says "not set".
        inherited = [(key, name, text) for key, name in variables.items() if (text := os.environ.get(key))]
        explicit = [(name, name, value) for name, value in given.items() if value is not None]
        return cls(**_chosen(inherited, types) | _chosen(explicit, types))


_SEVERAL = "tuple[str, ...]"
_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_EXPECTED = {"int": "a whole number", "bool": "true or false", "str": "text", "Mapping[str, str]": "values by name"}
_EXPECTED |= {_SEVERAL: "a list of texts"}


def name_unknown_variables() -> None:
    """Warn of variables of the environment that look like a setting and are none."""
    name_unknown(_variables({declared.name: str(declared.type) for declared in fields(RunSettings)}))


def _variables(types: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each setting by the variable that it may be given in."""
    return {PREFIX + name.upper(): name for name in _names(types)}


def _names(types: Mapping[str, str]) -> list[str]:
    """Return every name that a setting may be given under."""
    return [*types, *(name.removesuffix("_ms") for name in types if name.endswith("_ms"))]


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
    for candidate in (name, f"{name}_ms"):
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
    if wanted == _SEVERAL and isinstance(value, str):
        return tuple(each.strip() for each in value.split(",") if each.strip())
    if wanted == _SEVERAL and isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if type(value).__name__ != wanted:
        raise ConfigurationError(f"{called}: {value!r} is not {_EXPECTED[wanted]}")
    return value
