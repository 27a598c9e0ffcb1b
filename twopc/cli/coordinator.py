"""`twopc coordinator`: a coordinator as a service of its own, which jobs dial."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.server import CoordinatorServer
from twopc.cli.metrics_options import MetricsHost, MetricsPort, Traces
from twopc.cli.output import LogFormatOption, LogLevel, LogLevelOption, Output, OutputOption
from twopc.cli.setting_options import Meaning, option_of
from twopc.cli.token_options import TokenFile, read_token
from twopc.config import name_unknown_variables
from twopc.logs import configure_logging
from twopc.rpc.tls import TlsFiles
from twopc.storage.open import open_store

if TYPE_CHECKING:
    from twopc.metrics.server import MetricsServer

LOOPBACK = "127.0.0.1"

log = logging.getLogger(__name__)

app = typer.Typer(
    help="Run a coordinator as a service of its own, which jobs dial.", no_args_is_help=True, add_completion=False
)


@app.callback()
def _group() -> None:
    """Run a coordinator as a service of its own, which jobs dial."""


@app.command()
def start(
    checkpoint_dir: Annotated[
        str, option_of("checkpoint_dir", Meaning("The folder of all jobs' checkpoints, or its URL."))
    ],
    address: Annotated[str, typer.Option(help="HOST:PORT to listen on; port 0 takes a free one.")] = "127.0.0.1:0",
    token_file: TokenFile = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The coordinator's certificate, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key, PEM, without a password.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Who signs the certificates that clients must show, PEM.")
    ] = None,
    allow_insecure: Annotated[
        bool,
        typer.Option(
            "--allow-insecure",
            help="Open to all: listen beyond loopback though neither token nor certificates are set.",
        ),
    ] = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    traces: Traces = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Coordinate the checkpoints of all jobs that keep them in one folder.

    It prints its address on one line when it is ready; jobs dial that with `twopc run ... --coordinator HOST:PORT`.
    SIGTERM and Ctrl-C end it. Jobs run on without it, and go on taking checkpoints when it is started again at the
    same address, so give it a port of its own.

    Beyond loopback it wants a token, mutual TLS, or both. With mutual TLS a client's certificate says what it may do,
    by a URI among its subject's alternative names: urn:twopc:role:task (a worker) or urn:twopc:role:admin (a driver,
    an operator).

    \b
    Examples:
      twopc coordinator start --checkpoint-dir checkpoints --address 127.0.0.1:7070
      twopc coordinator start --checkpoint-dir /mnt/checkpoints --address 0.0.0.0:7070 --token-file token \\
        --tls-cert coordinator.pem --tls-key coordinator.key --tls-client-ca ca.pem
    """
    configure_logging(log_level or LogLevel.INFO, log_format or Output.TEXT)
    name_unknown_variables()
    tls = None
    if tls_cert or tls_key or tls_client_ca:
        tls = TlsFiles(*(str(path or "") for path in (tls_client_ca, tls_cert, tls_key)))
    store = open_store(checkpoint_dir)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = CoordinatorServer(store, address, read_token(token_file), tls=tls, allow_insecure=allow_insecure)
    metrics = None if metrics_port is None else _metrics_of(server, metrics_host or LOOPBACK, metrics_port)
    tracing = _traces_of(server) if traces else nullcontext()
    with tracing, metrics or nullcontext():
        bound = server.start()
        if output is Output.JSON:
            answer = {"address": bound, "pid": os.getpid(), "checkpoint_dir": store.identity}
            typer.echo(json.dumps(answer | ({} if metrics is None else {"metrics": metrics.address})))
        else:
            typer.echo(bound)
        ended.wait()
    server.stop()


@contextmanager
def _traces_of(server: CoordinatorServer) -> Iterator[None]:
    from twopc.tracing.sender import traces_sent

    with traces_sent() as tell:
        server.observe(tell)
        yield


def _metrics_of(server: CoordinatorServer, host: str, port: int) -> MetricsServer:
    from twopc.metrics.health import CoordinatorHealth
    from twopc.metrics.jobs import JobMetrics
    from twopc.metrics.server import MetricsServer

    metrics = JobMetrics(server.descriptions.known)
    server.observe(metrics.note)
    served = MetricsServer(host, port, metrics.registry, CoordinatorHealth(server.descriptions.known))
    log.info("metrics are at %s/metrics", served.address)
    return served
