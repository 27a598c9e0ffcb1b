"""`make demo`: real flights from Kafka to Kafka, exactly once, through a kill -9, verified record by record.

It starts a broker, loads the flights, runs `late_flights.py` on Spark, kills one subtask's Python worker after it has
pre-committed and before it has committed, watches the job recover, and compares the output with the answer computed
directly from the data file.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from flights_data import FLIGHTS, load_flights
from late_flights_answer import expected_late_flights, read_late_flights
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from twopc import events
from twopc.cli.view import PlainLines, live_view
from twopc.config import RunSettings
from twopc.driver.run import RunReport, run
from twopc.errors import TwoPhaseCommitError
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.loader.job_loader import load_job
from twopc.logs import configure_logging
from twopc.testing.ports import free_port
from twopc.testing.topics import create_topic

JOB_FILE = Path(__file__).with_name("late_flights.py")
PARALLELISM = 2
VICTIM = 1
KILL_AT_CHECKPOINT = 3
SHOWN_BEFORE_KILL_SECONDS = 0.5

console = Console(stderr=True)


def say(text: str) -> None:
    """Announce a step of the demo."""
    console.print(f"[bold cyan]==>[/] {text}")


def twopc(*arguments: str) -> str:
    """Run the command line as a user would; return what it printed."""
    command = [sys.executable, "-m", "twopc", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def start_broker(folder: Path, closing: ExitStack) -> str:
    """Start a real Kafka broker that ends with the demo; return its bootstrap servers."""
    data = str(folder / "kafka")
    closing.callback(twopc, "broker", "stop", "--data-dir", data)
    return twopc("broker", "start", "--data-dir", data, "--port", str(free_port()))


def load(bootstrap_servers: str) -> None:
    """Create the topics and load every flight."""
    for topic in ("flights", "late-flights"):
        create_topic(bootstrap_servers, topic, 4)
    columns = (TextColumn("    flights loaded"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=not console.is_terminal) as progress:
        task = progress.add_task("load", total=FLIGHTS)
        load_flights(bootstrap_servers, "flights", lambda count: progress.update(task, completed=count))


class Killer(threading.Thread):
    """Kills the worker that is held between its pre-commit and its commit."""

    def __init__(self, reached: Path) -> None:
        super().__init__(name="killer", daemon=True)
        self._reached = reached
        self._cancelled = threading.Event()
        self.killed: int | None = None

    def run(self) -> None:
        while not self._cancelled.wait(0.02):
            if self._reached.exists() and (text := self._reached.read_text()).endswith("\n"):
                self._cancelled.wait(SHOWN_BEFORE_KILL_SECONDS)
                self.killed = int(text)
                say(f"kill -9 {self.killed}: subtask {VICTIM}, pre-committed and not yet committed")
                os.kill(self.killed, signal.SIGKILL)
                return

    def cancel(self) -> None:
        self._cancelled.set()


def run_job(bootstrap_servers: str, folder: Path) -> tuple[RunReport, list[events.Event]]:
    """Run the job through the crash; return how it ended and what was seen."""
    reached = folder / "reached"
    os.environ[VARIABLE] = (
        f"{CrashPoint.BEFORE_COMMIT.name},checkpoint={KILL_AT_CHECKPOINT},subtask={VICTIM},once={reached},hold"
    )
    settings = RunSettings(
        bootstrap_servers=bootstrap_servers,
        checkpoint_dir=str(folder / "checkpoints"),
        parallelism=PARALLELISM,
        checkpoint_interval_ms=300,
        master=f"local[{PARALLELISM}]",
        until_end=True,
    )
    seen: list[events.Event] = []
    killer = Killer(reached)
    killer.start()
    with ExitStack() as closing:
        closing.callback(killer.cancel)
        view = closing.enter_context(live_view("late-flights")) if console.is_terminal else PlainLines("late-flights")

        def on_event(event: events.Event) -> None:
            if not isinstance(event, events.SubtaskProgress):
                seen.append(event)
            view.note(event)

        report = run(load_job(str(JOB_FILE)), settings, on_event=on_event)
    return report, seen


def verify(bootstrap_servers: str) -> bool:
    """Compare the output with the answer from the data file, record by record; say what was found."""
    expected = Counter(expected_late_flights())
    found = Counter(read_late_flights(bootstrap_servers))
    missing = expected - found
    extra = found - expected
    duplicated = sum(count for record, count in extra.items() if record in expected)
    strangers = sum(count for record, count in extra.items() if record not in expected)
    console.print(
        f"    expected {expected.total():,}   found {found.total():,}   missing {missing.total():,}   "
        f"duplicated {duplicated:,}   unexpected {strangers:,}"
    )
    return not missing and not extra


def recovered(seen: list[events.Event]) -> bool:
    """Say what recovery did; return whether a transaction was resumed after the crash."""
    for event in seen:
        match event:
            case _ if event.attempt == 1:
                continue
            case events.CheckpointRestored(checkpoint_id=number):
                console.print(f"    checkpoint {number} restored")
            case events.TransactionResumed(transaction=name):
                console.print(f"    resumed {name}")
            case events.TransactionAborted(transaction=name):
                console.print(f"    aborted the lingering {name}")
    return any(isinstance(event, events.TransactionResumed) for event in seen)


def demo(folder: Path, closing: ExitStack) -> int:
    """Run the whole demo; return the exit code."""
    began = time.monotonic()
    say("starting a real Kafka broker on loopback")
    bootstrap_servers = start_broker(folder, closing)
    console.print(f"    {bootstrap_servers}")
    say(f"loading {FLIGHTS:,} flights, as Avro, keyed by tail number, into topic flights (4 partitions)")
    load(bootstrap_servers)
    say(f"running {JOB_FILE.name} on Spark, parallelism {PARALLELISM}; subtask {VICTIM} will be killed on the way")
    report, seen = run_job(bootstrap_servers, folder)
    if report.stopped:
        say("stopped")
        return 130
    say(f"finished: {report.attempts} attempts, {report.checkpoints_completed} checkpoints completed; the recovery:")
    resumed = recovered(seen)
    say("verifying topic late-flights (read_committed) against the data file")
    exact = verify(bootstrap_servers)
    if exact and resumed:
        say(f"[bold green]exactly once[/], through a kill -9, in {time.monotonic() - began:.0f} s")
        return 0
    say(
        "[bold red]not exact[/]"
        if not exact
        else "[bold red]no transaction was resumed: the crash missed its moment[/]"
    )
    return 1


def main() -> int:
    """Run the demo in a temporary folder; clean up whatever happens."""
    configure_logging("info", "text")
    folder = Path(tempfile.mkdtemp(prefix="twopc-demo-"))
    with ExitStack() as closing:
        closing.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            return demo(folder, closing)
        except TwoPhaseCommitError as error:
            console.print(f"[bold red]error:[/] {error}", highlight=False)
            return error.exit_code
        except KeyboardInterrupt:
            say("interrupted: cleaning up")
            return 130


if __name__ == "__main__":
    sys.exit(main())
