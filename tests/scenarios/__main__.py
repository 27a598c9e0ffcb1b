"""`python -m tests.scenarios [--update] [NAME ...]`: shows the transcripts, or writes them into the scenario files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.scenarios.play import play
from tests.scenarios.script import Script, read, write

FOLDER = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios, without .txt; all unless given")
    parser.add_argument("--update", action="store_true", help="accept the transcripts as they are now")
    options = parser.parse_args()
    for path in sorted(FOLDER.glob("*.txt")):
        if options.names and path.stem not in options.names:
            continue
        head, _ = read(path)
        transcript = play(Script.parse(head))
        if options.update:
            write(path, head, transcript)
        else:
            sys.stdout.write(f"{head}----\n{transcript}\n")


if __name__ == "__main__":
    main()
