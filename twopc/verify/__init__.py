"""Judges an output against its input, from outside, and names what is wrong.

>>> from twopc.kafka.topic_partition import TopicPartition
>>> from twopc.verify import Expected, Found, Judge, Kind, Place
>>> source, target = TopicPartition("in", 0), TopicPartition("out", 0)
>>> judge = Judge("out")
>>> for offset, value in enumerate((b"A", b"B", b"C")):
...     judge.expect(Expected(Place(source, offset), b"k", value))
>>> for offset, value in enumerate((b"A", b"A", b"C")):
...     judge.see(Found(Place(target, offset), b"k", value))
>>> verdict = judge.finish()
>>> verdict.held
False
>>> for finding in verdict.findings:
...     print(finding)
lost: made of in[0]@1, key 'k'
duplicated: out[0]@1, key 'k', found 'A'
>>> verdict.counts == {Kind.DUPLICATED: 1, Kind.LOST: 1}
True
"""

from twopc.kafka.place import Place
from twopc.verify.findings import Finding, Kind, Verdict
from twopc.verify.history import Expected, Found, Outcome, Transaction
from twopc.verify.judge import Judge

__all__ = ["Expected", "Finding", "Found", "Judge", "Kind", "Outcome", "Place", "Transaction", "Verdict"]
