"""`python -m twopc`: the command line."""

from twopc.cli import main

if __name__ == "__main__":
    main()
