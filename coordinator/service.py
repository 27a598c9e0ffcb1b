"""The gRPC edge: wire to values, values to wire, errors to status codes. Decides nothing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import grpc

from coordinator.access import Limits, admitted
from coordinator.events import (
    Attached,
    ConfirmCommittables,
    Detached,
    EndAttempt,
    MessageReceived,
    NoteInput,
    PlanStarts,
    RefuseRescale,
    Request,
    SessionId,
    SettleLoss,
    StartAttempt,
    StopJob,
)
from coordinator.loop import Loop, LoopClient, abort_with
from coordinator.sessions import Channel, Sessions, subscription
from twopc import events
from twopc.errors import ConfigurationError, ProtocolViolation, TwoPhaseCommitError
from twopc.protocol.attempts import CheckpointSettings, Traces
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import ToSubtask
from twopc.protocol.planned_starts import StartsPlanned
from twopc.rpc import control_pb2 as pb
from twopc.rpc.codec import Attach, decode_from_subtask, encode_to_subtask
from twopc.rpc.control_pb2_grpc import JobControlServicer, SubtaskControlServicer
from twopc.rpc.fields import (
    decode,
    decode_value,
    encode_event,
    encode_value,
)
from twopc.rpc.redaction import redact
from twopc.rpc.status import Overloaded

log = logging.getLogger(__name__)


class SubtaskService(SubtaskControlServicer):
    """One stream per subtask: a thread that reads it, and the server's own that writes it."""

    def __init__(self, loop: Loop, sessions: Sessions, limits: Limits) -> None:
        self._loop = loop
        self._sessions = sessions
        self._limits = limits
        self._client = LoopClient(loop, limits)

    def Attach(  # noqa: N802  the name on the wire
        self, request_iterator: Iterator[pb.FromSubtask], context: grpc.ServicerContext
    ) -> Iterator[pb.ToSubtask]:
        attach = _first(request_iterator, context, self._limits.attach_seconds)
        session, channel = self._sessions.open()
        context.add_callback(channel.close)
        attached = Attached(
            session=session,
            attempt=attach.attempt,
            subtask=attach.subtask,
            last_checkpoint_id=attach.last_checkpoint_id,
            end_of_input=attach.end_of_input,
            pid=attach.pid,
            host=attach.host,
            heartbeat_timeout_ms=attach.heartbeat_timeout_ms,
        )
        try:
            self._client.ask(lambda jobs: jobs.attach(attach.job, attached), context)
            reader = threading.Thread(
                target=self._read,
                args=(attach.job, session, channel, request_iterator),
                name=f"subtask-{attach.subtask}",
                daemon=True,
            )
            reader.start()
            for message in channel:
                yield encode_to_subtask(message)
        except Exception as error:  # noqa: BLE001  the peer gets a status code, whatever it is
            abort_with(context, error)
        finally:
            self._sessions.forget(session)
            self._loop.post(attach.job, Detached(session))

    def _read(
        self, job: str, session: SessionId, channel: Channel[ToSubtask], requests: Iterator[pb.FromSubtask]
    ) -> None:
        in_flight = threading.Semaphore(self._limits.events_in_flight)
        try:
            for message in map(decode_from_subtask, requests):
                if isinstance(message, Attach):
                    raise ProtocolViolation("a subtask attached twice on one stream")
                if not in_flight.acquire(blocking=False):
                    raise Overloaded(f"more than {self._limits.events_in_flight} messages of one subtask were waiting")
                self._loop.post(job, MessageReceived(session, admitted(message)), handled=in_flight.release)
            channel.close()
        except TwoPhaseCommitError as error:
            channel.close(error)
        except grpc.RpcError:
            channel.close()
        except Exception:
            # gRPC raises a bare Exception when the stream under the iterator is gone.
            log.debug("a subtask's stream ended", exc_info=True)
            channel.close()


def _first(requests: Iterator[pb.FromSubtask], context: grpc.ServicerContext, patience_seconds: float) -> Attach:
    silence = threading.Timer(patience_seconds, context.cancel)
    silence.daemon = True
    silence.start()
    try:
        first = decode_from_subtask(next(requests, pb.FromSubtask()))
        if isinstance(first, Attach):
            return replace(first, host=redact(first.host))
        raise ProtocolViolation("a subtask's first message must be Attach")
    except ProtocolViolation as error:
        abort_with(context, error)
    finally:
        silence.cancel()


class JobService(JobControlServicer):
    """The service for drivers."""

    def __init__(self, loop: Loop, sessions: Sessions, limits: Limits) -> None:
        self._sessions = sessions
        self._limits = limits
        self._client = LoopClient(loop, limits)

    def StartAttempt(  # noqa: N802
        self, request: pb.StartAttemptRequest, context: grpc.ServicerContext
    ) -> pb.StartAttemptResponse:
        try:
            if request.parallelism > self._limits.streams:
                raise ConfigurationError(
                    f"parallelism {request.parallelism} is more than this coordinator's limit, {self._limits.streams}"
                )
            wanted = StartAttempt(
                parallelism=request.parallelism,
                settings=decode(CheckpointSettings, request.settings),
                restore_from=request.restore_from,
                traces=decode(Traces, request.traces),
                restart=request.restart,
                restart_of=AttemptId(request.restart_of),
                host=redact(request.host),
                pid=request.pid,
            )
            started = self._client.ask(lambda jobs: jobs.start_attempt(request.job, wanted), context)
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)
        return pb.StartAttemptResponse(
            attempt=started.attempt,
            latest_json=encode_value(started.latest),
            restored_json=encode_value(started.restored),
            confirmed=sorted(started.confirmed),
            earlier_attempts=started.earlier_attempts,
            lost=sorted(started.lost),
            earlier_json=[encode_value(each) for each in started.earlier],
            planned_json=encode_value(started.planned),
        )

    def Confirm(  # noqa: N802
        self, request: pb.ConfirmRequest, context: grpc.ServicerContext
    ) -> pb.ConfirmResponse:
        attempt, checkpoint_id = AttemptId(request.attempt), CheckpointId(request.checkpoint_id)
        self._ask(request.job, ConfirmCommittables(attempt, checkpoint_id, tuple(request.committables)), context)
        return pb.ConfirmResponse()

    def NextGlobalCommit(  # noqa: N802
        self, request: pb.NextGlobalCommitRequest, context: grpc.ServicerContext
    ) -> pb.NextGlobalCommitResponse:
        attempt = AttemptId(request.attempt)
        try:
            commit = self._client.ask(lambda jobs: jobs.next_global_commit(request.job, attempt), context)
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)
        return pb.NextGlobalCommitResponse(commit_json=encode_value(commit))

    def SettleLoss(  # noqa: N802
        self, request: pb.SettleLossRequest, context: grpc.ServicerContext
    ) -> pb.SettleLossResponse:
        decided = SettleLoss(
            attempt=AttemptId(request.attempt),
            checkpoint_id=CheckpointId(request.checkpoint_id),
            names=tuple(request.committables),
            bases=tuple((SubtaskIndex(base.subtask), CheckpointId(base.checkpoint_id)) for base in request.bases),
            message=redact(request.message),
        )
        self._ask(request.job, decided, context)
        return pb.SettleLossResponse()

    def PlanStarts(  # noqa: N802
        self, request: pb.PlanStartsRequest, context: grpc.ServicerContext
    ) -> pb.PlanStartsResponse:
        try:
            planned = decode_value(StartsPlanned, request.planned_json)
            if planned is None:
                raise ProtocolViolation("PlanStarts needs planned starts")
        except ProtocolViolation as error:
            abort_with(context, error)
        self._ask(request.job, PlanStarts(planned), context)
        return pb.PlanStartsResponse()

    def Stop(self, request: pb.StopRequest, context: grpc.ServicerContext) -> pb.StopResponse:  # noqa: N802
        self._ask(request.job, StopJob(AttemptId(request.attempt)), context)
        return pb.StopResponse()

    def RefuseRescale(  # noqa: N802
        self, request: pb.RefuseRescaleRequest, context: grpc.ServicerContext
    ) -> pb.RefuseRescaleResponse:
        refused = RefuseRescale(AttemptId(request.attempt), request.request_id, redact(request.message))
        self._ask(request.job, refused, context)
        return pb.RefuseRescaleResponse()

    def NoteInput(self, request: pb.NoteInputRequest, context: grpc.ServicerContext) -> pb.NoteInputResponse:  # noqa: N802
        self._ask(request.job, NoteInput(AttemptId(request.attempt), tuple(map(redact, request.notes))), context)
        return pb.NoteInputResponse()

    def EndAttempt(  # noqa: N802
        self, request: pb.EndAttemptRequest, context: grpc.ServicerContext
    ) -> pb.EndAttemptResponse:
        self._ask(request.job, EndAttempt(AttemptId(request.attempt), redact(request.reason)), context)
        return pb.EndAttemptResponse()

    def Watch(  # noqa: N802
        self, request: pb.WatchRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.JobEvents]:
        channel = Channel[events.CoordinatorEvent]()
        context.add_callback(channel.close)
        try:
            self._client.ask(subscription(request.job, channel, self._sessions), context)
            for batch in channel.batches():
                yield pb.JobEvents(events_json=[encode_event(event) for event in batch])
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)
        finally:
            self._sessions.unwatch(channel)

    def _ask(
        self,
        job: str,
        request: Request,
        context: grpc.ServicerContext,
    ) -> None:
        try:
            self._client.ask(lambda jobs: jobs.request(job, request), context)
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)
