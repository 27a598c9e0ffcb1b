"""`twopc broker`: a real Kafka on this machine, for trying things out; it runs on when the command has returned."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from twopc.cli.output import Output, OutputOption
from twopc.errors import ConfigurationError
from twopc.testing.local_broker import LocalBroker

NOT_RUNNING = 3
PORT = 9092

app = typer.Typer(
    help="Start and stop a real Kafka on this machine, for trying things out. Needs Java 17 or newer.",
    no_args_is_help=True,
    add_completion=False,
)

DataDir = Annotated[Path, typer.Option("--data-dir", envvar="TWOPC_BROKER_DIR", help="The folder of the broker.")]


@app.command()
def start(
    data_dir: DataDir,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Where it listens, on loopback.", show_default=str(PORT))
    ] = None,
    brokers: Annotated[int, typer.Option(min=1, max=9, help="How many; they listen on PORT, PORT + 1, ...")] = 1,
    output: OutputOption = Output.TEXT,
) -> None:
    """Start Kafka in the background; return when it is ready, and print its bootstrap servers.

    The first start fetches Kafka's jars (44 MB) into the user's cache and checks their SHA-256. What is in the data
    folder from an earlier start is there again. A broker that runs already is left alone.

    Example: twopc broker start --data-dir /tmp/kafka --port 9092
    """
    logging.basicConfig(format="%(message)s")
    logging.getLogger("twopc.testing").setLevel(logging.INFO)
    broker = LocalBroker.open(data_dir)
    if broker is not None and broker.running:
        _refuse_other_port(broker, port)
        typer.echo(f"already running in {broker.data_dir}", err=True)
    elif broker is None or not broker.any_running:
        broker = LocalBroker(data_dir, port=port or PORT, brokers=brokers)
    broker.start()
    typer.echo(json.dumps(_state(broker)) if output is Output.JSON else broker.bootstrap_servers)


def _refuse_other_port(broker: LocalBroker, port: int | None) -> None:
    if port is not None and not broker.bootstrap_servers.split(",")[0].endswith(f":{port}"):
        raise ConfigurationError(
            f"the broker in {broker.data_dir} runs already, at {broker.bootstrap_servers}: use that, or stop it before "
            f"it is started at port {port}"
        )


@app.command()
def status(data_dir: DataDir, output: OutputOption = Output.TEXT) -> None:
    """Say whether a broker runs, and where; exit with 3 when it does not.

    Example: twopc broker status --data-dir /tmp/kafka -o json
    """
    broker = LocalBroker.open(data_dir)
    running = broker is not None and broker.running
    if output is Output.JSON:
        typer.echo(json.dumps(_state(broker) if broker else {"running": False, "data_dir": str(data_dir.absolute())}))
    elif broker is None or not broker.any_running:
        typer.echo(f"not running in {data_dir}")
    else:
        typer.echo(f"{'running' if running else 'partly running'} at {broker.bootstrap_servers}")
        for node in broker.nodes:
            typer.echo(f"  {node.folder.name}: {f'process {node.pid}' if node.pid else 'not running'}, log {node.log}")
    if not running:
        raise typer.Exit(NOT_RUNNING)


@app.command()
def stop(data_dir: DataDir, output: OutputOption = Output.TEXT) -> None:
    """Stop a broker in order, by force if that takes too long; its data stays in the folder.

    Example: twopc broker stop --data-dir /tmp/kafka
    """
    broker = LocalBroker.open(data_dir)
    if broker is None or not broker.any_running:
        _tell(output, {"stopped": False, "data_dir": str(data_dir)}, f"not running in {data_dir}")
        return
    broker.stop()
    answer = {"stopped": True, "bootstrap_servers": broker.bootstrap_servers, "data_dir": str(broker.data_dir)}
    _tell(output, answer, f"stopped {broker.bootstrap_servers}")


def _tell(output: Output, body: dict[str, Any], sentence: str) -> None:
    typer.echo(json.dumps(body) if output is Output.JSON else sentence)


def _state(broker: LocalBroker) -> dict[str, Any]:
    return {
        "running": broker.running,
        "bootstrap_servers": broker.bootstrap_servers,
        "data_dir": str(broker.data_dir),
        "nodes": [{"name": node.folder.name, "pid": node.pid, "log": str(node.log)} for node in broker.nodes],
    }
