"""A real schema registry on this machine: Apicurio Registry, which speaks as Confluent's does, with nothing on disk.

Its archive is fetched once, when the first test asks for it. The folder that is unpacked from it got its name when it
was whole.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import time
import urllib.request
from pathlib import Path
from typing import Self

from twopc.errors import Unavailable
from twopc.java import find_java
from twopc.testing.jars import Jars, ensure_jars, exclusive
from twopc.testing.ports import free_port

# The newest that runs on Java 17.
VERSION = "2.6.13.Final"
APICURIO = Jars(
    f"apicurio-registry-{VERSION}",
    f"Apicurio Registry {VERSION}",
    142,
    f'''\
    <dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false">
      <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" classifier="all"/>
    </dependency>''',
    Path(__file__).with_name(f"apicurio-registry-{VERSION}.sha256"),
)
READY_TIMEOUT_S = 180
STOP_TIMEOUT_S = 30
_POLL_S = 0.1
_LOOPBACK = "127.0.0.1"
_JVM_OPTIONS = ("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class LocalRegistry:
    """Use it as a context: it answers at `url` inside, with compatibility BACKWARD. What it has ends with it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        return f"http://{_LOOPBACK}:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it, at the address that it had before, if it had one; it is empty then. Return when it answers."""
        jar = ensure_registry() / f"apicurio-registry-app-{VERSION}-runner.jar"
        self._port = self._port or free_port()
        options = (f"-Dquarkus.http.host={_LOOPBACK}", f"-Dquarkus.http.port={self._port}")
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(find_java()), *_JVM_OPTIONS, *options, "-jar", str(jar)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_ready(self._process)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise Unavailable(f"the schema registry did not start; {self._log} says why")
            time.sleep(_POLL_S)

    def _answers(self) -> bool:
        body = json.dumps({"compatibility": "BACKWARD"}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/config", body, headers, method="PUT")  # noqa: S310 - our own
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False


def ensure_registry() -> Path:
    """Return the folder of what the registry is started from; fetch and unpack it first where it is missing."""
    archives = ensure_jars(APICURIO)
    folder = archives.with_name(f"{APICURIO.name}-unpacked")
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            _unpack(next(archives.glob("*.tar.gz")), folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    arriving = folder.with_name(f"{folder.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    with tarfile.open(archive) as opened:
        opened.extractall(arriving, filter="data")
    arriving.rename(folder)
