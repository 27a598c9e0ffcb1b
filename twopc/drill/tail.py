"""Where in a topic the output of a range of the input begins, key by key. Pure.

Nothing says at which offset of the output a checkpoint stood. But what was written since then must be the end of what
stands there: of each key, the last records, as many as were written by now. So they are found from the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from twopc.verify.alignment import align

SLACK = 100


def begins_at(expected: Sequence[int], required: int, found: Sequence[int]) -> int:
    """Return from which record of `found` on the records of a key are those that are expected.

    `expected` and `found` are identities, in order. At least `required` of those expected must be there, more may be.
    Where no beginning of what is expected is the end of what is found, the most likely place is returned: something is
    wrong then, and it takes the records from there on to say what.
    """
    for count in range(min(len(expected), len(found)), required - 1, -1):
        if _ends_with(found, expected, count):
            return len(found) - count
    start = max(0, len(found) - len(expected) - SLACK)
    pairs = align(expected, found[start:])
    return start + pairs[0][1] if pairs else len(found)


def _ends_with(found: Sequence[int], expected: Sequence[int], count: int) -> bool:
    """Whether the last `count` found are the first `count` expected; the ends first, as they mostly tell."""
    if count == 0:
        return True
    if found[-1] != expected[count - 1] or found[-count] != expected[0]:
        return False
    return list(found[-count:]) == list(expected[:count])
