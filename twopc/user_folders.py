"""The folders of the user who runs this: for what is kept between commands, and for what is only faster to have.

A container often runs under a number that no user has, with no home: then they are below the folder for temporary
files, in one that only this number can use.
"""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs

from twopc.errors import ConfigurationError

STATE_VARIABLE = "TWOPC_STATE_DIR"
CACHE_VARIABLE = "TWOPC_CACHE_DIR"


def state_folder() -> Path:
    """Return where commands find what runs: TWOPC_STATE_DIR, else the user's folder for state."""
    return _chosen(STATE_VARIABLE) or _of_user(platformdirs.user_state_path, STATE_VARIABLE)


def cache_folder() -> Path:
    """Return where downloads are kept: TWOPC_CACHE_DIR, else the user's cache folder."""
    return _chosen(CACHE_VARIABLE) or _of_user(platformdirs.user_cache_path, CACHE_VARIABLE)


def made_cache_folder() -> Path:
    """Return the cache folder, made where it is missing; raise ConfigurationError where it can't be written to."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise ConfigurationError(
            f"downloads can't be kept in {folder} ({error.strerror}): name another folder with {CACHE_VARIABLE}"
        ) from error


def temporary_folder() -> Path:
    """Return the folder for temporary files, as TMPDIR or the system has it; raise ConfigurationError without one."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise ConfigurationError(
            "there is no folder for temporary files that can be written to: name one with TMPDIR"
        ) from error


def home_of_a_nameless_user() -> Path | None:
    """Return a folder that does for a home where this user's number has no entry on the machine; None where it has."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return state_folder()
    return None


def _chosen(variable: str) -> Path | None:
    chosen = os.environ.get(variable)
    return Path(chosen).absolute() if chosen else None


def _of_user(find: Callable[[str], Path], variable: str) -> Path:
    try:
        return find("twopc")
    except RuntimeError:
        return _private_folder(variable)


def _private_folder(variable: str) -> Path:
    """Return a folder for a user without a home; raise ConfigurationError where it is somebody else's."""
    folder = temporary_folder() / f"twopc-of-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigurationError(
            f"user {os.getuid()} has no home, and {folder} can't be made ({error.strerror}): name a folder with "
            f"{variable}, or a TMPDIR that can be written"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigurationError(
            f"user {os.getuid()} has no home, and {folder} is no folder of that user alone: name one with {variable}"
        )
    return folder
