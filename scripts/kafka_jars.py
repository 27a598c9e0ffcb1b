"""Puts Kafka's jars into the user's cache; the last step of the set-up, run by the environment's own Python."""

from __future__ import annotations

import logging
import sys

from twopc.errors import TwoPhaseCommitError
from twopc.testing.jars import ensure_jars


def main() -> int:
    """Fetch what is missing, or say in one line why that can't be."""
    logging.basicConfig(level=logging.INFO, format="set-up: %(message)s", stream=sys.stdout)
    try:
        ensure_jars()
    except TwoPhaseCommitError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
