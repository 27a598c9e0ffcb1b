"""The driver's client of the coordinator: calls that return our values and raise our errors."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

import grpc

from twopc import events
from twopc.errors import Unavailable
from twopc.protocol.requests import DriverRequest, Request, StartAttempt, redacted
from twopc.rpc import control_pb2 as pb
from twopc.rpc.channel import credentials, open_channel
from twopc.rpc.control_pb2_grpc import JobControlStub
from twopc.rpc.fields import decode_event, decode_value, encode_one
from twopc.rpc.redaction import redact
from twopc.rpc.status import error_of
from twopc.rpc.tls import TlsFiles

CALL_SECONDS = 15.0
RETRY_SECONDS = 0.2


A = TypeVar("A")
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

    def ask(self, job: str, request: Request[A]) -> A:
        """Return the coordinator's answer; raise what it answers with, or Unavailable."""
        shown: Request[Any] = request
        if isinstance(request, StartAttempt):
            shown = replace(request, host=socket.gethostname(), pid=os.getpid())
        asked = encode_one(redacted(shown, redact), DriverRequest)
        answer = self._call(self._stub.Ask, pb.AskRequest(job=job, request_json=asked))
        return cast(A, None if request.ANSWER is None else decode_value(request.ANSWER, answer.answer_json))

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
