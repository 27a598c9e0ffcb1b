"""A real Prometheus for tests: of this machine, else of Debian's package, fetched once and started from the cache.

Trusted as apt trusts it: by the signature over Debian's lists. No root is needed, and nothing is installed.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from twopc.testing.jars import exclusive
from twopc.user_folders import cache_folder

PACKAGE = "prometheus"
FETCH_SECONDS = 300


class NotToBeHad(Exception):
    """There is no Prometheus here, and why."""


def program(name: str) -> Path:
    """Return where `prometheus` or `promtool` is; raise NotToBeHad."""
    installed = shutil.which(name)
    if installed:
        return Path(installed)
    folder = cache_folder() / "debian-prometheus"
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            _fetch(folder)
    return folder / "usr" / "bin" / name


def _fetch(folder: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NotToBeHad(f"{PACKAGE} is not installed, and this is no Debian to fetch it from")
    arriving = folder.with_name(f"{folder.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    lists, archives = arriving / "lists", arriving / "archives"
    for needed in (lists / "partial", archives / "partial"):
        needed.mkdir(parents=True)
    # Lists of its own: those of the machine may be empty, and only root may renew them.
    options = ("-qq", "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={arriving}")
    for command in (("update",), ("download", PACKAGE)):
        _run(["apt-get", *options, *command], archives)
    (package,) = archives.glob("*.deb")
    _run(["dpkg-deb", "-x", str(package), str(arriving / "unpacked")], archives)
    (arriving / "unpacked").rename(folder)
    shutil.rmtree(arriving)


def _run(command: list[str], folder: Path) -> None:
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"{command[0]} did not fetch {PACKAGE} in {FETCH_SECONDS} s") from None
    if ended.returncode != 0:
        raise NotToBeHad(f"{command[0]} can't fetch {PACKAGE}: {ended.stderr.strip()[-300:]}")
