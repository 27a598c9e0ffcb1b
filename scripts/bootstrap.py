"""Makes sure that a Python new enough runs the set-up, and hands over to it.

Any Python 3 can run this module, so that an old one gets an answer and not a syntax error: nothing newer than
Python 3.6 here.
"""

import os
import shutil
import subprocess
import sys

OLDEST_VERSION = (3, 11)
NEWER_NAMES = ("python3.13", "python3.12", "python3.11")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> int:
    """Hand over to `scripts.environment`, or say in one line why not."""
    python = find_python()
    if python:
        os.chdir(ROOT)
        os.execv(python, [python, "-m", "scripts.environment"])  # noqa: S606  nothing of it comes from outside
    version = ".".join(str(number) for number in sys.version_info[:3])
    sys.stderr.write(
        f"set-up: {sys.executable} is Python {version}, too old, and PATH has none of {', '.join(NEWER_NAMES)} "
        "that works: install Python 3.11 or newer and try again\n"
    )
    return 1


def find_python() -> str:
    """The Python that runs this where it is new enough, else a newer one of PATH, else nothing."""
    if sys.version_info >= OLDEST_VERSION:
        return sys.executable
    candidates = (shutil.which(name) for name in NEWER_NAMES)
    return next((path for path in candidates if path and is_new_enough(path)), "")


def is_new_enough(python: str) -> bool:
    """Ask it: a version manager puts names on PATH that only fail."""
    question = f"import sys; sys.exit(sys.version_info < {OLDEST_VERSION})"
    return subprocess.call([python, "-c", question], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


if __name__ == "__main__":
    sys.exit(main())
