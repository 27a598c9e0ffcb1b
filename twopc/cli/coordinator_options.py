"""The options by which a command reaches a coordinator, and the connection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from twopc.cli.checkpoint_options import CheckpointDir
from twopc.cli.completion import job_names
from twopc.cli.setting_options import Meaning, option_of
from twopc.cli.token_options import TokenFile, read_token
from twopc.driver.discovery import Announcement, find
from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.protocol.ids import checked_name
from twopc.rpc.admin_client import AdminClient
from twopc.rpc.tls import TlsFiles
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore

CoordinatorCa = Annotated[str | None, option_of("coordinator_ca")]
CoordinatorCert = Annotated[str | None, option_of("coordinator_cert")]
CoordinatorKey = Annotated[str | None, option_of("coordinator_key")]
Coordinator = Annotated[
    str | None,
    option_of(
        "coordinator",
        Meaning("HOST:PORT of the coordinator, if it is a service; else the job with this --checkpoint-dir runs here."),
    ),
]
Job = Annotated[str, typer.Argument(help="The name of the job.", autocompletion=job_names)]
Timeout = Annotated[str, typer.Option(help="How long to wait for the outcome, as 30s, 5m.")]


@dataclass(frozen=True, slots=True)
class CoordinatorOptions:
    """The address of a command's coordinator, and the credentials for it.

    Without a `coordinator` it is the one inside the driver of a run on this machine.
    """

    coordinator: str | None
    checkpoint_dir: str
    token_file: Path | None
    ca: str | None
    cert: str | None
    key: str | None

    @property
    def store(self) -> CheckpointStore:
        return open_store(self.checkpoint_dir)

    def connect(self) -> AdminClient:
        """Connect to the coordinator that has an address."""
        assert self.coordinator is not None
        tls = TlsFiles(self.ca, self.cert or "", self.key or "") if self.ca else None
        return AdminClient(self.coordinator, token=read_token(self.token_file), tls=tls)

    def connect_to(self, job: str) -> AdminClient:
        """Connect to the coordinator of a job; raise ConfigurationError if it isn't known where that is."""
        return self.connect() if self.coordinator else connect(find(self.store, checked_name("job", job)))


def coordinator_options(
    checkpoint_dir: CheckpointDir = "checkpoints",
    coordinator: Coordinator = None,
    token_file: TokenFile = None,
    coordinator_ca: CoordinatorCa = None,
    coordinator_cert: CoordinatorCert = None,
    coordinator_key: CoordinatorKey = None,
) -> CoordinatorOptions:
    """The options that say where the coordinator is; for `twopc.cli.shared_options.shared_options`."""
    return CoordinatorOptions(
        coordinator, checkpoint_dir, token_file, coordinator_ca, coordinator_cert, coordinator_key
    )


def connect(announcement: Announcement) -> AdminClient:
    """Connect to the coordinator inside a driver on this machine."""
    return AdminClient(announcement.address, token=announcement.token)


def wait_seconds(timeout: str) -> float:
    """Return the seconds of a duration; raise ConfigurationError if it is none."""
    try:
        return duration_ms(timeout) / 1000
    except ValueError as error:
        raise ConfigurationError(f"--timeout: {error}") from error
