"""A coordinator that can be reached: core, ledger, loop and gRPC put together. Embedded in a driver, or on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from coordinator.access import Limits, RoleCheck, TokenCheck, check_address
from coordinator.admin import AdminService
from coordinator.descriptions import JobDescriptions
from coordinator.jobs import Jobs
from coordinator.loop import Loop
from coordinator.service import JobService, SubtaskService
from coordinator.sessions import EventStream, Sessions
from twopc import events
from twopc.clock import SystemClock
from twopc.errors import ConfigurationError
from twopc.rpc import admin_pb2, admin_pb2_grpc, control_pb2, control_pb2_grpc
from twopc.rpc.channel import ANSWER_BYTES_MAX, MESSAGE_BYTES_MAX
from twopc.rpc.tls import TlsFiles, server_credentials
from twopc.storage.store import CheckpointStore, jobs_in

STOP_SECONDS = 1.0

_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", ANSWER_BYTES_MAX),
    # Without this, a second coordinator could listen on the same port, and calls would go to either.
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # One ping is under way at a time, and where much is said it is one of gRPC's own, which has a minute.
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
)


class CoordinatorServer:
    """Serves the jobs whose checkpoints are in one store, until it is stopped.

    With `tls` it shows a certificate; with an authority in that, it asks for one. `observers` are called with every
    event, on the coordinator's own thread: they must be quick and ask it nothing. `events` is for who follows a job
    from inside this process, `descriptions` for who asks there how jobs are.
    """

    def __init__(
        self,
        store: CheckpointStore,
        address: str = "127.0.0.1:0",
        token: str | None = None,
        observers: Sequence[Callable[[events.CoordinatorEvent], None]] = (),
        *,
        tls: TlsFiles | None = None,
        limits: Limits = Limits(),  # noqa: B008  a frozen value
        allow_insecure: bool = False,
    ) -> None:
        check_address(address, token, tls, allow_insecure)
        store.prepare()
        self._address = address
        self._credentials = None if tls is None else server_credentials(tls)
        clock = SystemClock()
        self._sessions = Sessions(observers)
        jobs = Jobs(store.within, clock, self._sessions, lambda: jobs_in(store))
        self._loop = Loop(jobs, clock)
        self.events = EventStream(self._loop, self._sessions, limits)
        self.descriptions = JobDescriptions(self._loop, limits)
        self._health = health.HealthServicer()
        self._server = grpc.server(
            ThreadPoolExecutor(limits.streams, thread_name_prefix="coordinator-rpc"),
            interceptors=_checks(token, tls),
            options=(*_OPTIONS, ("grpc.max_concurrent_streams", limits.streams_of_connection)),
            maximum_concurrent_rpcs=limits.streams,
        )
        control_pb2_grpc.add_SubtaskControlServicer_to_server(  # type: ignore[no-untyped-call]
            SubtaskService(self._loop, self._sessions, limits), self._server
        )
        control_pb2_grpc.add_JobControlServicer_to_server(  # type: ignore[no-untyped-call]
            JobService(self._loop, self._sessions, limits), self._server
        )
        admin_pb2_grpc.add_AdminServicer_to_server(  # type: ignore[no-untyped-call]
            AdminService(self._loop, self._sessions, limits), self._server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(_service_names(), self._server)

    def observe(self, observer: Callable[[events.CoordinatorEvent], None]) -> None:
        """Call it with every event from now on, as the `observers`."""
        self._sessions.observe(observer)

    def start(self) -> str:
        """Start serving; return the address, with the port that was taken. Raise ConfigurationError if it is in use."""
        try:
            port = self._bind()
        except RuntimeError as error:
            raise ConfigurationError(
                f"the coordinator can't listen on {self._address}: is the port in use, or the host not this machine's?"
            ) from error
        self._loop.start()
        self._server.start()
        self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        return f"{self._address.rpartition(':')[0]}:{port}"

    def _bind(self) -> int:
        if self._credentials is None:
            return self._server.add_insecure_port(self._address)
        return self._server.add_secure_port(self._address, self._credentials)

    def stop(self) -> None:
        """Hang up on everyone, and end. Subtasks dial again, in case another coordinator takes over."""
        self._health.enter_graceful_shutdown()
        stopped = self._server.stop(STOP_SECONDS)
        self._sessions.close()
        stopped.wait()
        self._loop.stop()


def _checks(token: str | None, tls: TlsFiles | None) -> list[grpc.ServerInterceptor[Any, Any]]:
    by_token = [TokenCheck(token)] if token else []
    return [*by_token, RoleCheck()] if tls is not None and tls.ca else [*by_token]


def _service_names() -> tuple[str, ...]:
    files = (admin_pb2.DESCRIPTOR, control_pb2.DESCRIPTOR)
    ours = (service.full_name for file in files for service in file.services_by_name.values())
    return (*ours, health.SERVICE_NAME, reflection.SERVICE_NAME)
