"""Azurite, Microsoft's emulator of Azure Blob Storage, in memory, where it is installed: the tests fetch none of it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import time
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import ProxyHandler, Request, build_opener

from twopc.testing.broker_settings import LOOPBACK
from twopc.testing.ports import free_port

CONTAINER = "checkpoints"
PROGRAM = "azurite-blob"
READY_SECONDS = 60.0

# The account that Azurite has unless told otherwise; both are in its documentation.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2021-08-06"
_NO_HEADERS = "\n" * 12


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


class Azurite:
    """One server with one container; leaving the context ends it, and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        options = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "--blobHost", LOOPBACK, "--blobPort", str(self.port), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        try:
            self._make_container()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._kill()

    def environment(self) -> Mapping[str, str]:
        """What a process needs to find it."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://{LOOPBACK}:{self.port}/{_ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }

    def url(self, prefix: str) -> str:
        return f"az://{CONTAINER}/{prefix}"

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)

    def _make_container(self) -> None:
        """Ask for it until the server answers: the client of the product makes none."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                build_opener(ProxyHandler({})).open(self._signed(), timeout=10).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _signed(self) -> Request:
        named = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        headers = "".join(f"{name}:{value}\n" for name, value in named.items())
        text = f"PUT{_NO_HEADERS}{headers}/{_ACCOUNT}/{_ACCOUNT}/{CONTAINER}\nrestype:container"
        signature = base64.b64encode(hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)).decode()
        url = f"{self.environment()['AZURE_STORAGE_ENDPOINT']}/{CONTAINER}?restype=container"
        return Request(url, method="PUT", headers=named | {"Authorization": f"SharedKey {_ACCOUNT}:{signature}"})
