"""The jobs with an operator of their own: a new key, windows, a table, two streams, dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import orjson

from peers.case import Case
from peers.workload import BEGIN_MS, DIGITS, Judge, SecondInput, Text, Workload, filled, key_of, timestamp_of

NEW_KEY = slice(DIGITS - 3, DIGITS)
"""Where in a text value its new key is: the last three digits of its number."""
WINDOW_MS = 10_000
TABLE_IS_OLDER_MS = 3_600_000
ONE_BAD_IN = 1_000
TORN = b'{"n": '


class RekeyedJudge(Judge):
    """A new key's counts must come in order, none missing, none twice, and no more than it has records."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._counts: Counter[bytes | None] = Counter()

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        self._counts[key] += 1
        expected = len(range(int(key or b"0"), self.case.records, 1_000))
        self.note(self.taken, int(value) == self._counts[key] <= expected)


class RekeyedCount(Text):
    """For every record, how many its new key has had, wherever the records were."""

    judge = RekeyedJudge


class WindowedJudge(Judge):
    """Each window of a key that time has passed by must be there once, with its count; later ones may be."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._counts = Counter((key_of(n, case.keys), _window(n)) for n in range(case.records))
        # Every key comes again within as many records as there are keys, and moves the time of its partition.
        passed = timestamp_of(case.records - 1) - case.keys - WINDOW_MS
        self._missing = {window for window in self._counts if window[1] <= passed}
        self._told: set[tuple[bytes, int]] = set()
        self._closed = len(self._missing)

    def expected(self) -> int:
        return self._closed

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert key is not None
        assert value is not None
        self.taken += 1
        start, count = map(int, value.split())
        window = key, start
        self.strange += window in self._told or self._counts[window] != count
        self._told.add(window)
        self._missing.discard(window)

    def complaint(self) -> str | None:
        if not self._missing and not self.strange:
            return None
        return f"{len(self._missing)} of {self._closed} windows are missing, {self.strange} are not as they should be"


class WindowedCount(Text):
    """How many records a key has had in each window of ten seconds of event time, when that has passed."""

    judge = WindowedJudge


class JoinJudge(Judge):
    """Expects each record once, with the name of its key."""

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        number = int(value[:DIGITS])
        right = key == key_of(number, self.case.keys) and value[DIGITS:] == b" " + name_of(key)
        self.note(number, right)


class TableJoin(Text):
    """The number of each record, with the name that a table has for its key."""

    judge = JoinJudge

    @staticmethod
    def second(case: Case) -> SecondInput:
        """Return the name of each key, all of them older than the input."""
        keys = (key_of(number, case.keys) for number in range(case.keys))
        names = ((key, name_of(key), BEGIN_MS - TABLE_IS_OLDER_MS) for key in keys)
        return SecondInput(f"table-{case.keys}-{case.partitions}", names)


def name_of(key: bytes) -> bytes:
    """Return the name of a key, as the table has it."""
    return b"name of " + key


class PairJudge(Judge):
    """Expects each record once, with the one that is as far in the other topic."""

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        number, _, other = value.partition(b" ")
        self.note(int(number), key == key_of(int(number), self.case.keys) and number == other)


class IntervalJoin(Text):
    """Each record of the text with that of another topic that has its key, and at most half a second between them.

    A key comes again in as many milliseconds as there are keys, so with 1,000 of them each record meets one.
    """

    judge = PairJudge

    @staticmethod
    def second(case: Case) -> SecondInput:
        numbers = ((key_of(n, case.keys), b"%012d" % n, timestamp_of(n)) for n in range(case.records))
        return SecondInput(f"others-{case.records}-{case.partitions}-{case.keys}", numbers)


class GoodJudge(Judge):
    """Expects every record that can be read, with one field more."""

    def expected(self) -> int:
        return self.case.records - len(range(0, self.case.records, ONE_BAD_IN))

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        body = orjson.loads(value)
        number = body["n"]
        right = number % ONE_BAD_IN != 0 and body["half"] == number // 2 and body["user"] == f"user-{number % 97}"
        self.note(number, right and key == key_of(number, self.case.keys))


class DeadJudge(Judge):
    """Expects every record that can't be read, as it was."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._make = DeadLetters.values(case)

    def expected(self) -> int:
        return len(range(0, self.case.records, ONE_BAD_IN))

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        number = int(value[len(TORN) : len(TORN) + DIGITS])
        self.note(number, value == self._make(number) and key == key_of(number, self.case.keys))


class DeadLetters(Workload):
    """JSON: add a field; one in a thousand is torn, and goes elsewhere as it is."""

    form = "torn-json"
    judge = GoodJudge
    dead_judge = DeadJudge

    @staticmethod
    def values(case: Case) -> Callable[[int], bytes]:
        text = filled(max(DIGITS + 10, case.value_bytes - 50)).decode()

        def make(number: int) -> bytes:
            if number % ONE_BAD_IN == 0:
                return b"%b%012d, %b" % (TORN, number, text.encode())
            return orjson.dumps({"n": number, "user": f"user-{number % 97}", "text": text})

        return make


OPERATOR_WORKLOADS: dict[str, type[Workload]] = {
    "rekeyed_count": RekeyedCount,
    "windowed_count": WindowedCount,
    "table_join": TableJoin,
    "interval_join": IntervalJoin,
    "dead_letters": DeadLetters,
}


def _window(number: int) -> int:
    return BEGIN_MS + number // WINDOW_MS * WINDOW_MS
