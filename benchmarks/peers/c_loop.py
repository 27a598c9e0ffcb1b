"""The yardstick below Python: the stateless job in C on the librdkafka that confluent-kafka brings along."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import files, version
from pathlib import Path

from peers.case import Case
from peers.system import PROGRAMS, Launch, Missing, Place, System
from twopc.kafka.clients.client_config import LONGEST_TIMEOUT_MS, consumer_config, producer_config, transactional_config

SOURCE = PROGRAMS / "copy.c"


class CLoop(System):
    """`programs/copy.c`: a process a subtask."""

    name = "c"
    jobs = frozenset({"upper", "upper_batches"})
    settings = (
        "the client settings of twopc.kafka.clients.client_config; batches of 2,000 in, a call for each record out"
    )

    def __init__(self) -> None:
        self._program: Path | None = None

    def prepare(self) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise Missing("there is no C compiler on this machine")
        library = _librdkafka()
        self._program = Path(tempfile.mkdtemp(prefix="twopc-copy-")) / "copy"
        argv = [compiler, "-O2", "-pthread", "-o", str(self._program), str(SOURCE)]
        argv += [f"-L{library.parent}", f"-l:{library.name}", f"-Wl,-rpath,{library.parent}"]
        compiled = subprocess.run(argv, capture_output=True, text=True, check=False)
        if compiled.returncode:
            raise Missing(f"the C compiler refuses {SOURCE.name}: {compiled.stderr.strip()}")

    def version(self) -> str:
        return f"librdkafka of confluent-kafka {version('confluent-kafka')}"

    def launch(self, case: Case, place: Place) -> Launch:
        settings = place.folder / "settings"
        settings.write_text("\n".join([*_lines("consumer", _consumer(place)), *_lines("producer", _producer(place))]))
        commands = [
            [str(part) for part in (self._program, place.source, place.target, f"{place.name}-{subtask}")]
            + [str(part) for part in (case.interval_ms, subtask, case.width, settings)]
            for subtask in range(case.width)
        ]
        if case.width == 1:
            return Launch(commands[0])
        every = f"import subprocess,sys; all = [subprocess.Popen(c) for c in {commands!r}]; "
        return Launch([sys.executable, "-c", every + "sys.exit(any([each.wait() for each in all]))"])


def _consumer(place: Place) -> dict[str, object]:
    return consumer_config(place.servers, place.name, {}) | {"enable.partition.eof": False}


def _producer(place: Place) -> dict[str, object]:
    settings = transactional_config(producer_config(place.servers, {}), place.name, LONGEST_TIMEOUT_MS)
    return {name: value for name, value in settings.items() if name != "transactional.id"}


def _lines(whose: str, settings: dict[str, object]) -> list[str]:
    return [f"{whose} {name} {_text(value)}" for name, value in settings.items() if name != "logger"]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _librdkafka() -> Path:
    for file in files("confluent-kafka") or ():
        if file.name.startswith("librdkafka"):
            return Path(str(file.locate())).resolve()
    raise Missing("confluent-kafka is built on a librdkafka of this machine: no file of it is known")
