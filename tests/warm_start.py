"""Starts `python -m MODULE` of ours warm: forked from a process that has imported what it needs.

`install` puts `WarmPopen` in the place of `subprocess.Popen`, so tests and product start processes as they always do.
Each is a process of its own, a child of whoever started it, with its environment, folder, descriptors, session and exit
code. What it doesn't do is start and end an interpreter. Whatever is not `[sys.executable, "-m", MODULE, ...]`, with or
without `-P`, of one of the modules below does (the recipes of the documents, Spark, all that installs), and everything
where there is no Linux, or with `COLD_START=1`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from typing import Any, NoReturn

from scripts.tiers import orphans

COLD = "COLD_START"
WORKER = "twopc.worker"
MODULES = frozenset({"twopc", WORKER, "twopc.worker.parent_watchdog", "tests.crash_cells.driver"})
_IMPORTS = (
    "confluent_kafka.admin",
    "encodings.idna",
    "grpc._channel",
    "grpc._interceptor",
    "grpc._server",
    "kafka.admin",
    "rocksdict",
    "twopc.cli.job_run",
    "twopc.cli.run",
    "twopc.cli.coordinator",
    "twopc.driver.processes",
    "twopc.faults.driver",
    "twopc.job",
    "twopc.kafka.absence",
    "twopc.kafka.connectors",
    "twopc.kafka.dead_letter",
    "twopc.kafka.registry.serde",
    "twopc.kafka.repartition",
    "twopc.operators.async_map",
    "twopc.operators.process",
    "twopc.operators.stream_join_step",
    "twopc.operators.window_kinds",
    "twopc.verify.run",
    "twopc.worker.bootstrap",
    "typer._adapters",
)
"""What a run imports, at its start or later. What is missing here, each process imports by itself: half a second."""
_AUDITED = "DRILL_JOB"
"""Who has it is looked for from outside, by the environment that it was started with. A fork shows its server's."""
_REQUEST_BYTES = 1 << 18
_ORIGINAL = subprocess.Popen


class WarmPopen(subprocess.Popen[Any]):
    """As `subprocess.Popen`; a module of ours is forked where nothing is asked for that a fork can't give."""

    def _execute_child(self, *arguments: Any) -> None:
        original = _ORIGINAL._execute_child  # type: ignore[attr-defined]
        asked = inspect.signature(original).bind(self, *arguments).arguments
        if (server := _server_for(asked)) is None:
            original(self, *arguments)
            return
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        output = [asked[end] for end in ("p2cread", "c2pwrite", "errwrite")]
        try:
            self.pid = server.start(
                {
                    "arguments": [os.fsdecode(each) for each in _module_of(asked["args"])],
                    "folder_first": "-P" not in asked["args"][:2],
                    "environment": dict(os.environ if asked["env"] is None else asked["env"]),
                    "folder": os.fspath(asked["cwd"] or os.getcwd()),
                    "session": bool(asked["start_new_session"]),
                },
                [stream if descriptor == -1 else descriptor for stream, descriptor in enumerate(output)],
            )
            self._child_created = True
        finally:
            self._close_pipe_fds(*(asked[end] for end in ends))  # type: ignore[attr-defined]


def install() -> None:
    """Let this process start modules of ours warm, and what it starts so as well."""
    if sys.platform == "linux" and os.environ.get(COLD) != "1":
        subprocess.Popen = WarmPopen  # type: ignore[misc]


def install_here() -> None:
    """As `install`, from a process without threads that has imported what is needed: it forks the server itself."""
    global _forked
    _forked = _forked or _Server.forked()
    install()


def mark_of(name: str, value: str) -> str:
    """Return the name of the file that a process started warm keeps open if it has this in its environment."""
    return f"memfd:{name}={value}"


class _Server:
    """A process without threads that forks; it ends when the process that asks it does."""

    def __init__(self) -> None:
        self._asked, asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with asks:
            command = [sys.executable, "-m", "tests.warm_start", str(asks.fileno())]
            self._process = _ORIGINAL(command, pass_fds=[asks.fileno()], stdin=subprocess.DEVNULL, cwd=_ROOT)
        atexit.register(self._close)

    def _close(self) -> None:
        self._asked.close()
        self._process.wait()

    @classmethod
    def forked(cls) -> _Server:
        """Fork one from this process, which must have no thread yet, and have imported what is needed."""
        server = cls.__new__(cls)
        server._asked, asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server._lock = threading.Lock()
        if os.fork() == 0:
            server._asked.close()
            _serve(asks)
        asks.close()
        return server

    def start(self, request: dict[str, Any], streams: list[int]) -> int:
        """Return the id of the started process, a child of this one."""
        with self._lock:
            # Its parent, which the server forks, ends at once: then this process adopts it, and nobody else's orphans.
            orphans.adopt(True)
            try:
                socket.send_fds(self._asked, [json.dumps(request).encode()], streams)
                return int(self._asked.recv(32))
            finally:
                orphans.adopt(False)


_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_path: list[str] = []
"""What every interpreter has on its path behind its folder and PYTHONPATH."""
_forked: _Server | None = None
_started: _Server | None = None
_starting = threading.Lock()


def _server_for(asked: dict[str, Any]) -> _Server | None:
    """Return who forks what is asked for; None where an interpreter has to be started."""
    global _started
    if not (arguments := _module_of(asked["args"])):
        return None
    environment = os.environ if asked["env"] is None else asked["env"]
    ordinary = asked["executable"] is None and asked["preexec_fn"] is None and not asked["pass_fds"]
    if arguments[0] not in MODULES or not ordinary or asked["process_group"] != -1 or _is_particular(environment):
        return None
    if _forked is not None:
        return _forked
    with _starting:
        _started = _started or _Server()
    return _started


def _module_of(command: Any) -> list[Any]:
    """Return the module and its arguments, where that is what the command runs."""
    if isinstance(command, str | bytes | os.PathLike):
        return []
    for interpreter in ([sys.executable, "-m"], [sys.executable, "-P", "-m"]):
        if list(command[: len(interpreter)]) == interpreter:
            return list(command[len(interpreter) :])
    return []


def _is_particular(environment: Any) -> bool:
    """Whether an interpreter would take something from the environment that the server has not taken."""
    names = {name for name in environment if name.startswith("PYTHON")} - {"PYTHONPATH"}
    is_other = any(environment[name] != os.environ.get(name) for name in names)
    return is_other or environment.get(COLD) == "1"


def _serve(asks: socket.socket) -> NoReturn:
    """Fork a process for each request, until nobody is left who asks."""
    if not _path:
        _path[:] = [folder for folder in sys.path[1:] if folder not in _own_path(os.environ)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is imported stays shared: no search for garbage goes through it.
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(asks, _REQUEST_BYTES, 3)
        if not request:
            os._exit(0)
        heard, says = os.pipe()
        between = os.fork()
        if between == 0:
            between, process = os.getpid(), os.fork()
            if process == 0:
                for inherited in (asks.fileno(), heard, says):
                    os.close(inherited)
                _be(json.loads(request), descriptors, between)
            os.write(says, b"%d" % process)
            os._exit(0)
        os.waitpid(between, 0)
        asks.send(os.read(heard, 32))
        for descriptor in (heard, says, *descriptors):
            os.close(descriptor)


def _be(request: dict[str, Any], descriptors: list[int], between: int) -> NoReturn:
    """Be the process, from its environment to its exit code."""
    while os.getppid() == between:
        time.sleep(0.001)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["session"]:
        os.setsid()
    for stream, descriptor in enumerate(descriptors):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.chdir(request["folder"])
    _take_in(request["environment"], [os.getcwd()] if request["folder_first"] else [])
    _open_streams()
    module, *arguments = request["arguments"]
    if module != WORKER:
        install_here()
    sys.argv = [module, *arguments]
    _end(_code_of(module))


def _code_of(module: str) -> int:
    """Run it as `python -m` does; return the exit code."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
        if end.code is not None:
            sys.stderr.write(f"{end.code}\n")
        return int(end.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        return 128 + signal.SIGINT
    except BaseException:  # noqa: BLE001 - as an interpreter does at its end
        traceback.print_exc()
        return 1
    return 0


def _end(code: int) -> NoReturn:
    """End as an interpreter does: threads that are no daemons are waited for."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _own_path(environment: Any) -> list[str]:
    return [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]


def _take_in(environment: dict[str, str], first: list[str]) -> None:
    """Have this environment, also where something of it was read at an import, or is kept by a library."""
    from twopc.faults import points

    os.environ.clear()
    os.environ.update(environment)
    if _AUDITED in environment:
        os.memfd_create(mark_of(_AUDITED, environment[_AUDITED]).removeprefix("memfd:"))
    sys.path[:] = [*first, *_own_path(environment), *_path]
    time.tzset()
    tempfile.tempdir = None
    importlib.reload(points)


def _open_streams() -> None:
    """Open the standard streams anew, as they are now: terminals or not."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    line_by_line = 1 if os.isatty(1) or os.environ.get("PYTHONUNBUFFERED") else -1
    sys.stdout = open(1, "w", buffering=line_by_line, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def _main() -> NoReturn:
    for module in _IMPORTS:
        importlib.import_module(module)
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"an import has started threads: {len(threads)}"
    # What this module keeps is kept in the module that the others import.
    importlib.import_module("tests.warm_start")._serve(socket.socket(fileno=int(sys.argv[1])))
    raise AssertionError("it serves until it ends")


if __name__ == "__main__":
    _main()
