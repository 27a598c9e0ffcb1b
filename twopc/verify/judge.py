"""Holds what a reader saw of one output topic against what the input makes.

A record is known by its key, value and headers; never by its timestamp, which brokers may replace. So two records of a
key with equal values and headers are the same record twice, and only their number and order can be wrong.

Invariants:

- A right history has no findings, whatever its values are, and wherever its transactions ended.
- Every expected record is matched, pending, or has a finding, once; every found one is matched or has a finding, once.
  Two findings count among the matched too: a reordered record is there, and a record that disagrees is one for both.
- Nothing is said of the order of records that may be made of another input than they were attributed to.
- Memory: 22 bytes an expected record, 12 a found one, and about 300 a key; from the first record of a key on that was
  not the one due, 22 bytes more a found record of this key; the same for keys whose records come from several input
  partitions.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.counters import FindingCounters
from twopc.verify.expectation import END, Expectation
from twopc.verify.findings import Finding, Kind, Verdict, shown
from twopc.verify.history import Expected, Found, Outcome, Transaction, identity
from twopc.verify.key_diff import KeyDiff, in_any_order, in_lanes, in_order
from twopc.verify.lanes import IsCertain, Lanes, everywhere
from twopc.verify.record_buffer import RecordBuffer
from twopc.verify.transaction_ranges import Cuts, TransactionRanges

EXAMPLES = 10


def verdict_on(
    topic: str,
    expected: Iterable[Expected],
    found: Iterable[Found],
    *,
    complete: Mapping[TopicPartition, int] | None = None,
    cuts: Cuts | None = None,
    surely: IsCertain = everywhere,
    examples: int = EXAMPLES,
) -> Verdict:
    """Return the verdict on two whole histories, each in its order, as `Judge` takes them."""
    judge = Judge(topic, complete=complete, cuts=cuts, surely=surely, examples=examples)
    for output in expected:
        judge.expect(output)
    for record in found:
        judge.see(record)
    return judge.finish()


class Judge:
    """First `expect` everything, each input partition in its order on each path; then `see` everything, each output
    partition in its order; then `finish`.

    `complete` says up to which position of an input partition the output has to be there, its end unless named: what
    is made of later input may be there or not, and its absence is never a finding. `cuts` are the input positions at
    which transactions ended, if they are known. `surely` tells records of this history from others that stand in the
    topic and may look the same: all are, unless it is given. `examples` are so many findings kept of each kind.
    """

    def __init__(
        self,
        topic: str,
        *,
        complete: Mapping[TopicPartition, int] | None = None,
        cuts: Cuts | None = None,
        surely: IsCertain = everywhere,
        examples: int = EXAMPLES,
    ) -> None:
        self._topic = topic
        self._complete = dict(complete or {})
        self._expectation = Expectation()
        self._ranges = TransactionRanges(self._expectation, cuts or {})
        self._lanes = Lanes(self._expectation, surely)
        self._counters = FindingCounters(examples)
        self._next = array("i")
        self._output_of = array("i")
        self._scattered: set[int] = set()
        self._buffer = RecordBuffer()
        self._found = 0
        self._matched = 0

    def expect(self, expected: Expected) -> None:
        assert not self._next, "everything has to be expected before anything is seen"
        self._expectation.add(expected)

    def see(self, found: Found) -> None:
        self._found += 1
        transaction = found.transaction
        if transaction is not None and transaction.outcome is not Outcome.COMMITTED:
            self._report(Kind.ABORTED, found, detail=f"of the {transaction}")
            return
        key = self._expectation.key_number(found.key)
        if key is None:
            self._report(Kind.UNEXPECTED, found)
        elif not self._is_due(key, found):
            self._buffer.add(key, found, identity(found.value, found.headers))

    def finish(self) -> Verdict:
        """Judge the whole."""
        self._start()
        missing: dict[bytes | None, array[int]] = {}
        keys = self._expectation.keys()
        for key, name in enumerate(keys):
            due = list(self._expectation.chain(self._next[key]))
            if key in self._buffer:
                absent = self._resolve(key, name, due)
            else:
                absent = due
                if due or key in self._scattered:
                    self._lanes.doubt_alike(list(self._before(key, due)), due, scattered=key in self._scattered)
            if absent:
                missing[name] = array("i", absent)
        pending = self._judge_missing(missing)
        self._judge_lanes(keys)
        return Verdict(
            topic=self._topic,
            expected=len(self._expectation) - pending,
            pending=pending,
            found=self._found,
            matched=self._matched,
            counts=dict(self._counters.counts),
            findings=self._counters.first(),
            unordered_keys=self._lanes.unordered_keys,
        )

    def _start(self) -> None:
        if not self._next:
            self._next = array("i", self._expectation.first)
            self._output_of = array("i", [-1]) * len(self._next)

    def _is_due(self, key: int, found: Found) -> bool:
        """Move on if this is the next record of its key; from the first that isn't, all of the key are buffered."""
        self._start()
        partition = found.place.partition.partition
        if self._output_of[key] != partition:
            if self._output_of[key] >= 0:
                self._scattered.add(key)
            self._output_of[key] = partition
        if key in self._buffer or self._expectation.has_several_lanes(key):
            return False
        record = self._next[key]
        if record == END or self._expectation.identities[record] != identity(found.value, found.headers):
            return False
        if not self._lanes.is_sure(record, found.place):
            return False
        self._next[key] = self._expectation.following[record]
        self._match(record, found.transaction)
        self._lanes.put(record, found.place)
        return True

    def _match(self, record: int, transaction: Transaction | None) -> None:
        self._matched += 1
        if transaction is not None:
            self._ranges.note(transaction, record)

    def _resolve(self, key: int, name: bytes | None, due: Sequence[int]) -> list[int]:
        """Judge the records of a key that were buffered; return the records that are missing."""
        expectation, buffered = self._expectation, self._buffer[key]
        expected = [expectation.identities[record] for record in due]
        before = list(self._before(key, due))
        earlier = {expectation.identities[record] for record in before}
        pending = {index for index, record in enumerate(due) if self._may_be_missing(record)}
        if name is None or key in self._scattered:
            made = in_any_order(expected, buffered.identities, earlier, pending)
        elif expectation.has_several_lanes(key):
            made = in_lanes([expectation.lane(record) for record in due], expected, buffered.identities, pending)
        else:
            made = in_order(expected, buffered.identities, earlier)
        self._tell(key, name, due, made)
        self._lanes.attribute(
            before,
            due,
            [(element, self._buffer.place(key, index)) for index, element in enumerate(buffered.identities)],
            {place for _, place in made.reordered},
            scattered=key in self._scattered,
        )
        return [due[index] for index in made.missing]

    def _before(self, key: int, due: Sequence[int]) -> Iterator[int]:
        """Yield the records of a key that came when they were due."""
        for record in self._expectation.chain(self._expectation.first[key]):
            if due and record == due[0]:
                return
            yield record

    def _tell(self, key: int, name: bytes | None, due: Sequence[int], made: KeyDiff) -> None:
        for wanted, place in (*made.matched, *made.reordered):
            self._match(due[wanted], self._buffer.transaction(key, place))
        for kind, pairs in ((Kind.REORDERED, made.reordered), (Kind.DISAGREES, made.disagreeing)):
            for wanted, place in pairs:
                self._tell_one(kind, key, name, place, self._expectation.source(due[wanted]))
        for kind, indices in ((Kind.DUPLICATED, made.duplicated), (Kind.UNEXPECTED, made.unexpected)):
            for place in indices:
                self._tell_one(kind, key, name, place, None)

    def _tell_one(self, kind: Kind, key: int, name: bytes | None, index: int, source: Place | None) -> None:
        buffer = self._buffer
        transaction = buffer.transaction(key, index)
        self._counters.add(
            Finding(
                kind,
                shown(name),
                source=source,
                place=buffer.place(key, index),
                found=buffer.value(key, index),
                detail=f"of the {transaction}" if transaction else "",
            )
        )

    def _judge_missing(self, missing: Mapping[bytes | None, Sequence[int]]) -> int:
        """Name what is missing, by key; return how much of it may be."""
        required = {
            name: [record for record in records if not self._may_be_missing(record)]
            for name, records in missing.items()
        }
        torn = self._ranges.torn([record for records in required.values() for record in records])
        for name, records in required.items():
            for record in records:
                kind = Kind.TORN if record in torn else Kind.LOST
                self._counters.add(Finding(kind, shown(name), source=self._expectation.source(record)))
        return sum(map(len, missing.values())) - sum(map(len, required.values()))

    def _judge_lanes(self, keys: Sequence[bytes | None]) -> None:
        displaced = {each.record: each for each in self._lanes.displaced()}
        if not displaced:
            return
        for key, name in enumerate(keys):
            for record in self._expectation.chain(self._expectation.first[key]):
                if (each := displaced.get(record)) is not None:
                    side = "behind" if each.behind else "before"
                    detail = f"it stands {side} what is made of {self._expectation.source(each.other)}"
                    source = self._expectation.source(record)
                    self._counters.add(Finding(Kind.REORDERED, shown(name), source, each.place, detail=detail))

    def _may_be_missing(self, record: int) -> bool:
        if not self._complete:
            return False
        partition, offset = self._expectation.source(record)
        return offset >= self._complete.get(partition, offset + 1)

    def _report(self, kind: Kind, found: Found, detail: str = "") -> None:
        self._counters.add(Finding(kind, shown(found.key), place=found.place, found=shown(found.value), detail=detail))
