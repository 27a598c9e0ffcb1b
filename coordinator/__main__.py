"""`python -m coordinator`: a coordinator as a service of its own."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from coordinator.server import CoordinatorServer
from twopc.errors import ConfigurationError, TwoPhaseCommitError

TOKEN_VARIABLE = "TWOPC_COORDINATOR_TOKEN"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m coordinator",
        description="Coordinates the checkpoints of all jobs that have them in one folder. Prints its address on one "
        "line when it is ready. SIGTERM or Ctrl-C ends it; jobs go on when it is started again at the same address.",
    )
    parser.add_argument("--checkpoint-dir", type=Path, required=True, help="the folder of all jobs' checkpoints")
    parser.add_argument("--address", default="127.0.0.1:0", help="host:port to listen on; port 0 takes a free one")
    parser.add_argument(
        "--token-file", type=Path, help=f"a file with the bearer token to ask for (or set {TOKEN_VARIABLE})"
    )
    parser.add_argument(
        "--allow-insecure", action="store_true", help="listen on an address that others can reach, without a token"
    )
    return parser.parse_args()


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"--token-file {file} can't be read: {error.strerror}") from error
    if not token:
        raise ConfigurationError(f"--token-file {file} is empty")
    return token


def _serve(arguments: argparse.Namespace) -> None:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = CoordinatorServer(
        arguments.checkpoint_dir,
        arguments.address,
        _token(arguments.token_file),
        allow_insecure=arguments.allow_insecure,
    )
    sys.stdout.write(f"{server.start()}\n")
    sys.stdout.flush()
    ended.wait()
    server.stop()


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        _serve(_arguments())
    except TwoPhaseCommitError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
