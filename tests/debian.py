"""Programs of Debian's packages for tests, fetched once and started from the cache.

Trusted as apt trusts them: by the signature over Debian's lists. No root is needed, and nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from twopc.testing.jars import exclusive
from twopc.user_folders import cache_folder

FETCH_SECONDS = 300


class NotToBeHad(Exception):
    """There is no such program here, and why."""


def unpacked(package: str) -> Path:
    """Return the folder with a package, and with those that it needs and this machine lacks; raise NotToBeHad."""
    folder = cache_folder() / f"debian-{package}"
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            _fetch(package, folder)
    return folder


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment in which a program of it finds its libraries."""
    libraries = sorted({str(each.parent) for each in (folder / "usr" / "lib").rglob("*.so*")})
    return os.environ | {"LD_LIBRARY_PATH": ":".join(libraries)}


def _fetch(package: str, folder: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NotToBeHad(f"{package} is not installed, and this is no Debian to fetch it from")
    arriving = folder.with_name(f"{folder.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    lists, archives = arriving / "lists", arriving / "archives"
    for needed in (lists / "partial", archives / "partial"):
        needed.mkdir(parents=True)
    # Lists of its own: those of the machine may be empty, and only root may renew or lock them.
    own = {"Dir::State::Lists": lists, "Dir::Cache": arriving, "Debug::NoLocking": "1"}
    options = ("-qq", *(part for name, value in own.items() for part in ("-o", f"{name}={value}")))
    download = ("install", "--download-only", "--no-install-recommends", "-y", package)
    for command in (("update",), download):
        _run(package, ["apt-get", *options, *command], archives)
    for each in archives.glob("*.deb"):
        _run(package, ["dpkg-deb", "-x", str(each), str(arriving / "unpacked")], archives)
    (arriving / "unpacked").rename(folder)
    shutil.rmtree(arriving)


def _run(package: str, command: list[str], folder: Path) -> None:
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"{command[0]} did not fetch {package} in {FETCH_SECONDS} s") from None
    if ended.returncode != 0:
        raise NotToBeHad(f"{command[0]} can't fetch {package}: {ended.stderr.strip()[-300:]}")
