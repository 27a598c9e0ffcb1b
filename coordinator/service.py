"""The gRPC edge: wire to values, values to wire, errors to status codes. Decides nothing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import grpc

from coordinator.access import Limits, admitted, admitted_request
from coordinator.events import Attached, Detached, MessageReceived, SessionId
from coordinator.loop import Loop, LoopClient, abort_with
from coordinator.sessions import Channel, Sessions, subscription
from twopc import events
from twopc.errors import ProtocolViolation, TwoPhaseCommitError
from twopc.protocol.messages import ToSubtask
from twopc.protocol.requests import DriverRequest
from twopc.rpc import control_pb2 as pb
from twopc.rpc.codec import Attach, decode_from_subtask, encode_to_subtask
from twopc.rpc.control_pb2_grpc import JobControlServicer, SubtaskControlServicer
from twopc.rpc.fields import decode_one, encode_event, encode_value
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

    def Ask(self, request: pb.AskRequest, context: grpc.ServicerContext) -> pb.AskResponse:  # noqa: N802
        try:
            asked = admitted_request(decode_one(DriverRequest, request.request_json, "a request"), self._limits)
            answer = self._client.ask(lambda jobs: jobs.answer(request.job, asked), context)
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)
        return pb.AskResponse(answer_json=encode_value(answer))

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
