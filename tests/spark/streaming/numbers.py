"""The input of queries that are killed or stopped, files of numbers, and what must be written of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.spark.streaming.query import KEYS
from twopc.testing.topics import read_topic

NUMBERS_A_FILE = 100

Rows = Counter[tuple[str, str]]
"""How often each key and value can be read."""


def write_files(folder: Path, files: int) -> None:
    """Write so many files, of which each goes on where the one before ends."""
    folder.mkdir()
    for number in range(files):
        first = number * NUMBERS_A_FILE
        lines = "".join(f"{each}\n" for each in range(first, first + NUMBERS_A_FILE))
        (folder / f"{number:03d}.txt").write_text(lines)


def each_number(files: int) -> Rows:
    """Each number of these files as it is."""
    return Counter((str(each), str(each)) for each in range(files * NUMBERS_A_FILE))


def counts_after_each_batch(files: int, files_a_batch: int) -> Rows:
    """How often each last digit was seen: every batch tells of all of them."""
    of_a_file = NUMBERS_A_FILE // KEYS
    seen = range(files_a_batch * of_a_file, files * of_a_file + 1, files_a_batch * of_a_file)
    return Counter((str(key), str(count)) for key in range(KEYS) for count in seen)


def written(servers: str, topic: str) -> Rows:
    """Read what readers see."""
    read = read_topic(servers, topic)
    return Counter((str(each.key, "utf-8"), str(each.value, "utf-8")) for each in read if each.key and each.value)
