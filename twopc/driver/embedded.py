"""The one place where the data plane meets the control plane: a coordinator inside the driver's process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from coordinator.server import CoordinatorServer
from twopc.config import RunSettings
from twopc.driver.discovery import announced
from twopc.driver.events import EventSource
from twopc.protocol.job_description import JobDescription
from twopc.rpc.tls import TlsFiles, driver_tls, worker_tls
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore


@dataclass(frozen=True, slots=True)
class CoordinatorAddress:
    """The address to attach to, the bearer token that opens the door, and the driver's TLS where the door has it.

    `events` are those of a coordinator in this process, and `describe` asks it how its jobs are.
    """

    address: str
    token: str = field(repr=False)
    tls: TlsFiles | None = None
    events: EventSource | None = field(default=None, repr=False, compare=False)
    describe: Callable[[], tuple[JobDescription, ...]] | None = field(default=None, repr=False, compare=False)


@contextmanager
def coordinator_at_rest(store: CheckpointStore) -> Iterator[CoordinatorAddress]:
    """Run a coordinator for a moment, for a job that does not run: it writes to ledgers, and no subtask comes."""
    token = secrets.token_urlsafe(24)
    server = CoordinatorServer(store, address="127.0.0.1:0", token=token)
    try:
        yield CoordinatorAddress(server.start(), token)
    finally:
        server.stop()


@contextmanager
def coordinator_for(settings: RunSettings, bind_host: str, job: str) -> Iterator[CoordinatorAddress]:
    """Give the coordinator that the settings name, or run one of our own for as long as the context lasts."""
    if settings.coordinator is not None:
        worker_tls(settings)
        yield CoordinatorAddress(settings.coordinator, settings.coordinator_token, driver_tls(settings))
        return
    token = secrets.token_urlsafe(24)
    store = open_store(settings.checkpoint_dir)
    server = CoordinatorServer(store, address=f"{bind_host}:0", token=token)
    address = server.start()
    try:
        with announced(job, store, address, token):
            yield CoordinatorAddress(address, token, events=server.events, describe=server.descriptions.known)
    finally:
        server.stop()
