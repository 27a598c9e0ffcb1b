"""`python -m coordinator`: the same as `twopc coordinator start`."""

from __future__ import annotations

import sys

from twopc.cli import main

if __name__ == "__main__":
    main(["coordinator", "start", *sys.argv[1:]])
