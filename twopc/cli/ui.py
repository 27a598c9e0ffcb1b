"""`twopc ui`: the page of all jobs that keep their checkpoints in one place, whether they run or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

import typer

from twopc.cli.coordinator_options import CoordinatorOptions, coordinator_options
from twopc.cli.metrics_options import UiHost
from twopc.cli.output import Output, OutputOption
from twopc.cli.setting_options import Meaning, option_of
from twopc.cli.shared_options import shared_options
from twopc.cli.signals import told_to_end
from twopc.cli.token_options import read_ui_token
from twopc.errors import ConfigurationError
from twopc.protocol.job_description import JobDescription
from twopc.storage.store import jobs_in
from twopc.ui.document import OwnFacts
from twopc.ui.jobs import Jobs
from twopc.ui.pages import UiPages
from twopc.ui.versions import versions
from twopc.web.ports import LOOPBACK, PagePorts


@shared_options(options=coordinator_options)
def ui(
    options: CoordinatorOptions,
    ui_port: Annotated[int, option_of("ui_port", Meaning("The port to serve the page on; 0 takes a free one."))] = 0,
    ui_host: UiHost = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show jobs in a browser: their checkpoints, attempts, transactions, positions, and the state of a key.

    It prints the address of the page when it is ready, and serves it until Ctrl-C or SIGTERM. What it shows stands in
    the checkpoint folder; a job that runs on this machine, or at the --coordinator, is asked too. It changes nothing.

    The page of the run itself (twopc run --ui-port) also has the job's graph, its settings and its dead letters.

    \b
    Examples:
      twopc ui --checkpoint-dir checkpoints
      twopc ui --checkpoint-dir s3://bucket/checkpoints --coordinator 10.0.0.5:7070
    """
    store, host, token = options.store, ui_host or LOOPBACK, read_ui_token()
    if not options.coordinator and not jobs_in(store):
        raise ConfigurationError(f"there is no job in {store.place()}: name its folder with --checkpoint-dir")
    ports = PagePorts((LOOPBACK, None), (host, ui_port), token)
    jobs = Jobs(store, lambda: jobs_in(store), _describe(options), OwnFacts(versions=versions()))
    told = told_to_end()
    with ports.served(None, UiPages(jobs)) as addresses:
        address = f"http://{addresses['ui']}/"
        typer.echo(json.dumps({"ui": address}) if output is Output.JSON else address)
        told.wait()


def _describe(options: CoordinatorOptions) -> Callable[[str], JobDescription | None]:
    def describe(job: str) -> JobDescription | None:
        try:
            client = options.connect_to(job)
        except ConfigurationError:
            return None
        with client:
            return client.describe(job)

    return describe
