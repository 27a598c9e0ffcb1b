"""The options of the `twopc state` commands: which checkpoint, which state, which key, and how values are encoded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from twopc.cli.checkpoint_options import CheckpointDir, JobName
from twopc.errors import ConfigurationError
from twopc.inspect import Checkpoint, open_checkpoint
from twopc.inspect.key_text import KeyForm
from twopc.loader.job_loader import load_job
from twopc.serde import Serde
from twopc.state.serdes import serde_named

StateName = Annotated[
    str | None, typer.Argument(help="Only this state: the id of its operator, for a stateful_map its name.")
]
JobFile = Annotated[
    str | None,
    typer.Option("--job-file", help="Decode values as this job does, FILE.py or FILE.py:NAME; the file is run."),
]
SerdeOptions = Annotated[
    list[str] | None,
    typer.Option("--serde", help="STATE=json, STATE=string or STATE=bytes: decode the values of a state so."),
]
KeyAs = Annotated[KeyForm, typer.Option("--key-as", help="How the key or prefix is written here.")]


@dataclass(frozen=True, slots=True)
class CheckpointLocation:
    """The place of checkpoints, and their job."""

    checkpoint_dir: str
    job: str | None


@dataclass(frozen=True, slots=True)
class StateSource:
    """The place of checkpoints, and the encoding of their values where they don't say it themselves."""

    location: CheckpointLocation
    job_file: str | None = None
    serdes: Sequence[str] = ()

    def open(self, checkpoint: str) -> Checkpoint:
        """Open one checkpoint to look at."""
        location = self.location
        return open_checkpoint(
            checkpoint, checkpoint_dir=location.checkpoint_dir, job=location.job, serdes=self._serdes()
        )

    def refuse_unknown(self, *opened: Checkpoint) -> None:
        """Raise ConfigurationError if --serde names a state that none of these has: it would decode nothing."""
        given = dict(_parse_serdes(self.serdes))
        if not given:
            return
        known = {name for checkpoint in opened for name in checkpoint.states}
        for name in sorted(given.keys() - known):
            ids = " and ".join(str(checkpoint.checkpoint_id) for checkpoint in opened)
            raise ConfigurationError(
                f"--serde names state {name!r}, and in checkpoint {ids} there is none; there: "
                f"{', '.join(sorted(known)) or 'none'}"
            )

    def _serdes(self) -> Mapping[str, Serde]:
        of_job = load_job(self.job_file).state_serdes if self.job_file else {}
        return {str(state): serde for state, serde in of_job.items()} | dict(_parse_serdes(self.serdes))


def checkpoint_location(checkpoint_dir: CheckpointDir = "checkpoints", job: JobName = None) -> CheckpointLocation:
    """The options that every command has."""
    return CheckpointLocation(checkpoint_dir, job)


def state_source(
    checkpoint_dir: CheckpointDir = "checkpoints",
    job: JobName = None,
    job_file: JobFile = None,
    serde: SerdeOptions = None,
) -> StateSource:
    """The options of the commands that decode values."""
    return StateSource(CheckpointLocation(checkpoint_dir, job), job_file, serde or ())


def _parse_serdes(options: Iterable[str]) -> Iterable[tuple[str, Serde]]:
    for option in options:
        name, _, kind = option.partition("=")
        serde = serde_named(kind)
        if serde is None or not name:
            raise ConfigurationError(
                f"--serde {option!r} is not STATE=json, STATE=string or STATE=bytes; other serdes come with --job-file"
            )
        yield name, serde


def is_json(text: str) -> bool:
    """Whether this could name another key than the text."""
    try:
        return json.loads(text) is not None
    except ValueError:
        return False
