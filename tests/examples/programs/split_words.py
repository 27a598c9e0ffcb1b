"""Lines of two topics become words of two others: as many as there were, each where its first letter belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import Output, Program, Sent, differences
from twopc import Bytes

WORDS = ("apple", "Banana", "mango", "north", "Zebra")
MOST_WORDS = 4
FIRST_HALF, SECOND_HALF = "words-a-m", "words-n-z"


class SplitWords(Program):
    """A line has a word that no other has, and perhaps some that many have."""

    name = "split_words"
    inputs = ("in", "in-2")
    outputs = {FIRST_HALF: Bytes(), SECOND_HALF: Bytes()}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        return [Sent(topic=random.choice(self.inputs), value=_line(random, number)) for number in range(count)]

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        words = (word.decode() for record in sent for word in record.value.split())
        expected = Counter((_topic_of(word), word, b"1") for word in words)
        found = Counter((topic, out.key or "", out.value) for topic in self.outputs for out in output[topic])
        return differences("words", found, expected)


def _line(random: Random, number: int) -> bytes:
    words = random.choices(WORDS, k=random.randrange(MOST_WORDS))
    return " ".join([f"{random.choice(WORDS)}{number}", *words]).encode()


def _topic_of(word: str) -> str:
    return FIRST_HALF if word[0].lower() <= "m" else SECOND_HALF
