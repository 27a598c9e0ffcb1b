"""`twopc coordinator`: a coordinator as a service of its own, which jobs dial."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.server import CoordinatorServer
from twopc.cli.metrics_options import MetricsHost, MetricsPort, OtlpMetrics, Traces, UiHost, UiPort
from twopc.cli.output import LogFormatOption, LogLevel, LogLevelOption, Output, OutputOption
from twopc.cli.setting_options import Meaning, option_of
from twopc.cli.signals import told_to_end
from twopc.cli.token_options import TokenFile, read_token, read_ui_token
from twopc.config import name_unknown_variables
from twopc.logs import configure_logging
from twopc.rpc.tls import TlsFiles
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore, jobs_in
from twopc.web.answer import Pages
from twopc.web.ports import LOOPBACK, PagePorts

if TYPE_CHECKING:
    from twopc.metrics.jobs import JobMetrics


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
    ui_port: UiPort = None,
    ui_host: UiHost = None,
    traces: Traces = None,
    otlp_metrics: OtlpMetrics = None,
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
    told = told_to_end()
    server = CoordinatorServer(store, address, read_token(token_file), tls=tls, allow_insecure=allow_insecure)
    ports = PagePorts((metrics_host or LOOPBACK, metrics_port), (ui_host or LOOPBACK, ui_port), read_ui_token())
    tracing = _traces_of(server) if traces else nullcontext()
    with tracing, _metrics_of(server, store, ports, bool(otlp_metrics)) as addresses:
        bound = server.start()
        if output is Output.JSON:
            answer = {"address": bound, "pid": os.getpid(), "checkpoint_dir": store.identity}
            typer.echo(json.dumps(answer | addresses))
        else:
            typer.echo(bound)
        told.wait()
    server.stop()


@contextmanager
def _traces_of(server: CoordinatorServer) -> Iterator[None]:
    from twopc.tracing.sender import traces_sent

    with traces_sent() as tell:
        server.observe(tell)
        yield


@contextmanager
def _metrics_of(
    server: CoordinatorServer, store: CheckpointStore, ports: PagePorts, otlp: bool
) -> Iterator[dict[str, str]]:
    """Serve metrics and the page where a port is named for them, and send metrics; give the addresses."""
    if not ports.are_named and not otlp:
        yield {}
        return
    from twopc.metrics.health import CoordinatorHealth
    from twopc.metrics.jobs import JobMetrics
    from twopc.metrics.pages import MetricsPages

    known = server.descriptions.known
    metrics = JobMetrics(known)
    server.observe(metrics.note)
    of_metrics = MetricsPages(metrics.registry, CoordinatorHealth(known))
    of_ui = _ui_of(server, store) if ports.shows_ui else None
    with ports.served(of_metrics, of_ui) as addresses, _sent(metrics) if otlp else nullcontext():
        for what, address in addresses.items():
            log.info("%s: http://%s", what, address)
        yield addresses


def _sent(metrics: JobMetrics) -> AbstractContextManager[None]:
    from twopc.tracing.otlp_metrics import metrics_sent

    return metrics_sent(metrics.registry.collect)


def _ui_of(server: CoordinatorServer, store: CheckpointStore) -> Pages:
    from twopc.ui.jobs import Jobs, described_in
    from twopc.ui.pages import UiPages

    known = server.descriptions.known
    jobs = Jobs(store, lambda: jobs_in(store), lambda job: described_in(known(), job))
    server.observe(jobs.traces.note)
    return UiPages(jobs)
