"""The subtask's end of the stream to the coordinator: dials for ever, and repeats what may have been lost.

Invariants:
- messages reach the coordinator in the order in which they were sent, each at least once, as long as it can be reached;
- after Finish or FencedOff nothing is dialled any more;
- nothing is lost between a broken stream and the next: what was said is remembered under the same lock as it is queued.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import grpc

from twopc.errors import Unavailable
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.protocol.messages import Decline, Failed, FencedOff, Finish, ToCoordinator, ToSubtask
from twopc.rpc import control_pb2 as pb
from twopc.rpc.channel import MESSAGE_BYTES_MAX, credentials, open_channel
from twopc.rpc.codec import Attach, decode_to_subtask, encode_from_subtask
from twopc.rpc.control_pb2_grpc import SubtaskControlStub
from twopc.rpc.link_memory import LinkMemory
from twopc.rpc.redaction import redact
from twopc.rpc.tls import TlsFiles
from twopc.runtime.link import MessageTooLarge, ends_reading

CLOSE_SECONDS = 2.0
BACK_OFF_SECONDS = (0.05, 1.0)

_REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""The coordinator was reached and says no: dialling again won't help."""

log = logging.getLogger(__name__)


class _Outgoing:
    """The requests of one stream, until it is ended."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[pb.FromSubtask | None] = queue.SimpleQueue()

    def put(self, wire: pb.FromSubtask) -> None:
        self._messages.put(wire)

    def end(self) -> None:
        self._messages.put(None)

    def __iter__(self) -> Iterator[pb.FromSubtask]:
        return iter(self._messages.get, None)


class SubtaskLink:
    """A `twopc.runtime.link.Link` over gRPC, with a thread that keeps the stream open."""

    def __init__(
        self,
        address: str,
        *,
        job: str,
        attempt: AttemptId,
        subtask: SubtaskIndex,
        token: str | None = None,
        tls: TlsFiles | None = None,
        heartbeat_timeout_ms: int = 0,
    ) -> None:
        self._job = job
        self._attempt = attempt
        self._subtask = subtask
        self._heartbeat_timeout_ms = heartbeat_timeout_ms
        self._metadata = credentials(token)
        self._channel = open_channel(address, tls)
        self._stub = SubtaskControlStub(self._channel)  # type: ignore[no-untyped-call]
        self._memory = LinkMemory()
        self._changed = threading.Condition()
        self._inbox: deque[ToSubtask] = deque()
        self._outgoing: _Outgoing | None = None
        self._closing = threading.Event()
        self._close_by = float("inf")
        self._thread = threading.Thread(target=self._run, name=f"link-{subtask}", daemon=True)
        self._thread.start()

    def send(self, message: ToCoordinator) -> None:
        """Queue a message; it goes out now, or when the coordinator can be reached again. Raises MessageTooLarge."""
        message = _redacted(message)
        wire = encode_from_subtask(message)
        if (size := wire.ByteSize()) > MESSAGE_BYTES_MAX:
            raise MessageTooLarge(size, MESSAGE_BYTES_MAX)
        with self._changed:
            self._memory.note_sent(message)
            if self._outgoing is not None:
                self._outgoing.put(wire)

    def receive(self, timeout: float) -> list[ToSubtask]:
        """Return what has come, at once if there is something, else after at most `timeout` seconds."""
        with self._changed:
            if not self._inbox and timeout > 0:
                self._changed.wait(timeout)
            messages = list(self._inbox)
            self._inbox.clear()
        return messages

    def reading_ends(self) -> bool:
        """Whether nothing will be read any more, by what has come and stays to be received."""
        with self._changed:
            return any(map(ends_reading, self._inbox))

    def await_welcome(self, timeout: float) -> None:
        """Return when the coordinator has accepted this subtask; what else came stays to be received.

        Raises Fenced if it is turned away, Unavailable if nobody answers for `timeout` seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._memory.decided, timeout)
            if not self._memory.may_open():
                raise Unavailable(
                    f"subtask {self._subtask} has not been accepted by the coordinator within {timeout:.0f} s: is it "
                    "running, and reachable from this machine?"
                )

    def close(self) -> None:
        """Send what is waiting, for a bounded time, and hang up."""
        with self._changed:
            self._close_by = time.monotonic() + CLOSE_SECONDS
            self._closing.set()
            if self._outgoing is not None:
                self._outgoing.end()
        self._thread.join(CLOSE_SECONDS)
        self._channel.close()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        shortest, longest = BACK_OFF_SECONDS
        wait = shortest
        while True:
            heard, over = self._converse()
            if over or self._nothing_left_to_say():
                return
            wait = shortest if heard else min(wait * 2, longest)
            pause = wait * random.uniform(0.5, 1.0)
            if self._closing.is_set():
                time.sleep(shortest)
            else:
                self._closing.wait(pause)

    def _nothing_left_to_say(self) -> bool:
        return self._closing.is_set() and (self._memory.failed is None or time.monotonic() >= self._close_by)

    def _converse(self) -> tuple[bool, bool]:
        """Hold one stream until it ends; return whether anything was heard, and whether it was the last stream."""
        heard = False
        outgoing = self._open()
        try:
            for wire in self._stub.Attach(iter(outgoing), metadata=self._metadata):
                heard = True
                if self._receive(decode_to_subtask(wire)):
                    return heard, True
            return heard, self._closing.is_set()
        except grpc.RpcError as error:
            return heard, self._broken(error)
        except ValueError:
            # What gRPC raises on a channel that `close` has closed.
            return heard, True
        finally:
            with self._changed:
                self._outgoing = None
            outgoing.end()

    def _open(self) -> _Outgoing:
        outgoing = _Outgoing()
        with self._changed:
            attach = Attach(
                job=self._job,
                attempt=self._attempt,
                subtask=self._subtask,
                pid=os.getpid(),
                host=socket.gethostname(),
                last_checkpoint_id=self._memory.last_checkpoint_id,
                end_of_input=self._memory.end_of_input,
                heartbeat_timeout_ms=self._heartbeat_timeout_ms,
            )
            outgoing.put(encode_from_subtask(attach))
            for message in self._memory.repeat():
                outgoing.put(encode_from_subtask(message))
            if self._closing.is_set():
                outgoing.end()
            self._outgoing = outgoing
        return outgoing

    def _receive(self, message: ToSubtask) -> bool:
        """Hand a message to the subtask; return whether it is the last one."""
        with self._changed:
            self._memory.note_received(message)
            self._inbox.append(message)
            self._changed.notify_all()
        return isinstance(message, Finish | FencedOff)

    def _broken(self, error: grpc.RpcError) -> bool:
        code, details = error.code(), error.details() or ""
        if code in _REFUSALS:
            return self._receive(FencedOff(f"the coordinator refused subtask {self._subtask}: {details}"))
        log.debug("subtask %d: the stream to the coordinator broke (%s: %s)", self._subtask, code.name, details)
        return False


def _redacted(message: ToCoordinator) -> ToCoordinator:
    match message:
        case Decline():
            return replace(message, reason=redact(message.reason))
        case Failed():
            return replace(message, message=redact(message.message))
    return message
