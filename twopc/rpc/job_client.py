"""The driver's client of the coordinator: calls that return our values and raise our errors."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import grpc

from twopc import events
from twopc.config import RunSettings
from twopc.errors import Unavailable
from twopc.protocol.attempts import NO_TRACES, GlobalCommit, StartedAttempt, Traces
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned
from twopc.rpc import control_pb2 as pb
from twopc.rpc.channel import credentials, open_channel
from twopc.rpc.control_pb2_grpc import JobControlStub
from twopc.rpc.fields import (
    decode_event,
    decode_value,
    encode,
    encode_value,
)
from twopc.rpc.redaction import redact
from twopc.rpc.status import error_of
from twopc.rpc.tls import TlsFiles

__all__ = ["JobClient", "StartedAttempt"]

CALL_SECONDS = 15.0
RETRY_SECONDS = 0.2


T = TypeVar("T")


class JobClient:
    """Talks to one coordinator. Thread-safe. A call that can't reach it is repeated for `patience_seconds`."""

    def __init__(
        self, address: str, *, token: str | None = None, tls: TlsFiles | None = None, patience_seconds: float = 30.0
    ) -> None:
        self._address = address
        self._metadata = credentials(token)
        self._patience_seconds = patience_seconds
        self._channel = open_channel(address, tls)
        self._stub = JobControlStub(self._channel)  # type: ignore[no-untyped-call]
        self._lock = threading.Lock()
        self._watches: set[Any] = set()
        self._stopped = False

    def wait_ready(self, timeout: float) -> None:
        """Return when the coordinator can be reached; raise Unavailable after `timeout` seconds."""
        try:
            grpc.channel_ready_future(self._channel).result(timeout)
        except grpc.FutureTimeoutError:
            raise Unavailable(
                f"no coordinator answers at {self._address} (waited {timeout:g} s): is it started, and there, and "
                "do both sides use TLS with certificates that the other trusts, or neither?"
            ) from None

    def start_attempt(
        self,
        job: str,
        settings: RunSettings,
        restore_from: str = "latest",
        traces: Traces = NO_TRACES,
        *,
        restart: bool = False,
        restart_of: AttemptId = NO_ATTEMPT,
    ) -> StartedAttempt:
        """Create the next attempt, greater than all that left `traces`, which fences every earlier one.

        `restore_from` is "latest", "none" or an id. Raises ConfigurationError if the latest is to be restored, and the
        ledger knows too little of who left the traces. After a `restart` a stop that was asked for is still wanted.
        `restart_of` is the attempt that failed, if it is known: raises Fenced if the job has had a later one since.
        """
        answer = self._call(
            self._stub.StartAttempt,
            pb.StartAttemptRequest(
                job=job,
                parallelism=settings.parallelism,
                settings=encode(settings.checkpoint_settings(), pb.CheckpointSettings),
                restore_from=restore_from,
                traces=encode(traces, pb.Traces),
                restart=restart,
                restart_of=restart_of,
                host=socket.gethostname(),
                pid=os.getpid(),
            ),
        )
        earlier = [decode_value(CheckpointMetadata, data) for data in answer.earlier_json]
        return StartedAttempt(
            attempt=AttemptId(answer.attempt),
            latest=decode_value(CheckpointMetadata, answer.latest_json),
            restored=decode_value(CheckpointMetadata, answer.restored_json),
            confirmed=frozenset(answer.confirmed),
            earlier_attempts=answer.earlier_attempts,
            lost=frozenset(answer.lost),
            earlier=tuple(each for each in earlier if each is not None),
            planned=decode_value(StartsPlanned, answer.planned_json),
        )

    def confirm(self, job: str, attempt: AttemptId, checkpoint_id: CheckpointId, names: Sequence[str]) -> None:
        """Have it stored that these committables are committed; returns when that is durable."""
        request = pb.ConfirmRequest(job=job, attempt=attempt, checkpoint_id=checkpoint_id, committables=names)
        self._call(self._stub.Confirm, request)

    def next_global_commit(self, job: str, attempt: AttemptId) -> GlobalCommit | None:
        """Return what global committers have to commit next; None where they have committed all that has completed."""
        answer = self._call(self._stub.NextGlobalCommit, pb.NextGlobalCommitRequest(job=job, attempt=attempt))
        return decode_value(GlobalCommit, answer.commit_json)

    def settle_loss(
        self,
        job: str,
        attempt: AttemptId,
        checkpoint_id: CheckpointId,
        names: Sequence[str],
        bases: Mapping[SubtaskIndex, CheckpointId],
        message: str,
    ) -> None:
        """Have it stored what becomes of these committables, which are lost; returns when that is durable."""
        request = pb.SettleLossRequest(
            job=job,
            attempt=attempt,
            checkpoint_id=checkpoint_id,
            committables=names,
            bases=[pb.SubtaskBase(subtask=subtask, checkpoint_id=base) for subtask, base in sorted(bases.items())],
            message=message,
        )
        self._call(self._stub.SettleLoss, request)

    def plan_starts(self, job: str, planned: StartsPlanned) -> None:
        """Have it stored where an attempt begins to read; returns when that is durable."""
        self._call(self._stub.PlanStarts, pb.PlanStartsRequest(job=job, planned_json=encode_value(planned)))

    def stop(self, job: str, attempt: AttemptId) -> None:
        """Ask for a final checkpoint, after which the job finishes."""
        self._call(self._stub.Stop, pb.StopRequest(job=job, attempt=attempt))

    def refuse_rescale(self, job: str, attempt: AttemptId, request_id: str, message: str) -> None:
        """Tell who asked for another number of subtasks why that can't be."""
        request = pb.RefuseRescaleRequest(job=job, attempt=attempt, request_id=request_id, message=redact(message))
        self._call(self._stub.RefuseRescale, request)

    def note_input(self, job: str, attempt: AttemptId, notes: Sequence[str]) -> None:
        """Say what of the attempt's input is hidden, or not read, in place of what was said before."""
        request = pb.NoteInputRequest(job=job, attempt=attempt, notes=map(redact, notes))
        self._call(self._stub.NoteInput, request)

    def end_attempt(self, job: str, attempt: AttemptId, reason: str) -> None:
        """Say that the attempt is over; one that is over already is fine."""
        self._call(self._stub.EndAttempt, pb.EndAttemptRequest(job=job, attempt=attempt, reason=redact(reason)))

    def watch(self, job: str) -> Iterator[events.CoordinatorEvent]:
        """Yield every event of a job from now on, its status first, then how its attempt ended if it has.

        Ends when `stop_watching` is called; raises Unavailable when the stream breaks: watch again.
        """
        call = self._stub.Watch(pb.WatchRequest(job=job), metadata=self._metadata)
        with self._lock:
            self._watches.add(call)
            if self._stopped:
                call.cancel()
        try:
            for wire in call:
                yield from map(decode_event, wire.events_json)
        except grpc.RpcError as error:
            if not self._stopped:
                raise error_of(error, self._address) from None
        finally:
            call.cancel()
            with self._lock:
                self._watches.discard(call)

    def stop_watching(self) -> None:
        """End every `watch` of this client, for good."""
        with self._lock:
            self._stopped = True
            for call in self._watches:
                call.cancel()

    def close(self) -> None:
        self.stop_watching()
        self._channel.close()

    def _call(self, method: Callable[..., T], request: Any) -> T:
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                return method(request, timeout=CALL_SECONDS, metadata=self._metadata)
            except grpc.RpcError as error:
                reason = error_of(error, self._address)
                if not isinstance(reason, Unavailable) or time.monotonic() >= deadline:
                    raise reason from None
            time.sleep(RETRY_SECONDS)
