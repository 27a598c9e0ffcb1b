"""The command line, as `twopc` and as `python -m twopc`.

What a command needs is imported here and not before: so Ctrl-C in the meantime is no traceback either.
"""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from twopc.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
