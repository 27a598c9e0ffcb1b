"""A fork server for workers: it has imported all that a worker needs, which is most of a worker's start.

    fork_server = ForkServer()           # before this process has any thread
    worker = fork_server.start([job_file, str(os.getpid())], spec)

Each is a process as `python -m twopc.worker` is one: a child of this process, in a session of its own, with what it
prints in a pipe. What it doesn't do is start and end an interpreter; jobs that `twopc run` starts do (`test_kills.py`).
"""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from typing import IO, NoReturn

import confluent_kafka  # noqa: F401 - what every worker imports when it runs
import rocksdict  # noqa: F401

from twopc.worker.__main__ import main as run_worker

_PR_SET_CHILD_SUBREAPER = 36
_REQUEST_BYTES = 1 << 18
_LOOK_SECONDS = 0.005


class ForkedWorker:
    """One worker, with as much of Popen as a stage uses."""

    def __init__(self, pid: int, stdout: IO[str]) -> None:
        self.pid = pid
        self.stdout = stdout
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a worker", timeout or 0.0)
            time.sleep(_LOOK_SECONDS)
        return code

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        # Who has not been waited for keeps its id.
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """A process that forks workers when it is asked to, and ends when this one does."""

    def __init__(self) -> None:
        # A worker's parent, which the fork server has forked, ends at once: then the worker is this process's child.
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "this process can't adopt the workers")
        self._asked, asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            self._asked.close()
            _serve(asks)
        asks.close()

    def start(self, arguments: Sequence[str], spec: str) -> ForkedWorker:
        """Start a worker with these arguments, and the spec on its standard input."""
        reads, writes = os.pipe()
        socket.send_fds(self._asked, [json.dumps([arguments, spec]).encode()], [writes])
        os.close(writes)
        return ForkedWorker(int(self._asked.recv(_REQUEST_BYTES)), os.fdopen(reads, errors="replace"))


def _serve(asks: socket.socket) -> NoReturn:
    """Fork a worker for each request, until nobody is left who asks."""
    # What is imported stays shared: no worker's search for garbage goes through it.
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(asks, _REQUEST_BYTES, 1)
        if not request:
            os._exit(0)
        heard, says = os.pipe()
        between = os.fork()
        if between == 0:
            between, worker = os.getpid(), os.fork()
            if worker == 0:
                for inherited in (asks.fileno(), heard, says):
                    os.close(inherited)
                arguments, spec = json.loads(request)
                _work(between, arguments, spec, descriptors[0])
            os.write(says, b"%d" % worker)
            os._exit(0)
        # From now on the worker is the child of whom it was started for.
        os.waitpid(between, 0)
        asks.send(os.read(heard, 32))
        for descriptor in (heard, says, *descriptors):
            os.close(descriptor)


def _work(between: int, arguments: list[str], spec: str, output: int) -> NoReturn:
    """Be a worker."""
    while os.getppid() == between:
        time.sleep(0.001)
    os.setsid()
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    sys.argv, sys.stdin = ["twopc.worker", *arguments], io.StringIO(spec)
    code: object = 1
    try:
        code = run_worker()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as an interpreter does at its end
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
