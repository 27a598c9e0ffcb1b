"""`python -m scripts.tiers.keeper`: makes a run's folder, and after the run ends what lives of it, and deletes it.

It says the folder's name, and waits for the end of its standard input, which only the run holds open: so it is all the
same whether the run ended, was ended, or was killed. It is in a session of its own, where no Ctrl-C reaches it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from scripts.tiers.leftovers import belonging_to, empty, end_all

PREFIX = "twopc-tests-"


def main() -> int:
    """Keep one run; 1 if something of it could not be removed."""
    # Resolved, and short: what a folder holds must fit into the name of a socket, too.
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    print(folder, flush=True)
    sys.stdin.read()
    return 0 if remove(folder) else 1


def remove(folder: Path) -> bool:
    """End the processes of the run with this folder, and delete the folder; say what is left if that can't be done."""
    end_all(lambda: belonging_to(folder))
    if folder.exists():
        empty(folder)
        try:
            folder.rmdir()
        except OSError as error:
            print(f"tests: {folder} can't be deleted ({error.strerror}): see what is in it", file=sys.stderr)
    for process in belonging_to(folder):
        print(f"tests: process {process.pid} can't be ended: see what it waits for", file=sys.stderr)
    return not folder.exists() and not belonging_to(folder)


if __name__ == "__main__":
    sys.exit(main())
