"""The one place where the data plane meets the control plane: a coordinator inside the driver's process."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coordinator.server import CoordinatorServer
from twopc.config import RunSettings


@dataclass(frozen=True, slots=True)
class CoordinatorAddress:
    """Where to attach, and the bearer token that opens the door."""

    address: str
    token: str


@contextmanager
def coordinator_for(settings: RunSettings, bind_host: str) -> Iterator[CoordinatorAddress]:
    """Give the coordinator that the settings name, or run one of our own for as long as the context lasts."""
    if settings.coordinator is not None:
        yield CoordinatorAddress(settings.coordinator, settings.coordinator_token)
        return
    token = secrets.token_urlsafe(24)
    server = CoordinatorServer(Path(settings.checkpoint_dir), address=f"{bind_host}:0", token=token)
    address = server.start()
    try:
        yield CoordinatorAddress(address, token)
    finally:
        server.stop()
