"""The answers to EndTxn in README.md; `python -m tests.simulation.differential.documented` writes them anew."""

from __future__ import annotations

from pathlib import Path

from tests.simulation.transaction_tables import END_TXN_1, END_TXN_2, Asks, Code
from twopc.kafka.clients.described_transaction import BrokerState

DOCUMENT = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- answers to EndTxn -->\n", "<!-- end of answers -->\n"
STATES = tuple(dict.fromkeys(state for state, _ in END_TXN_1))
_HEAD = """\
| state | 0 to 4: commit | abort | 5: commit | abort | 5, again: commit | abort |
|---|---|---|---|---|---|---|
"""


def table() -> str:
    return _HEAD + "".join(f"| {' | '.join(_row(state))} |\n" for state in STATES)


def written() -> str:
    """The table that stands in the document."""
    return DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]


def _row(state: BrokerState) -> list[str]:
    answers = [END_TXN_1[state, commit] for commit in (True, False)]
    answers += [END_TXN_2[state, commit, asks] for asks in Asks for commit in (True, False)]
    return [state.value, *map(_word, answers)]


def _word(code: Code | None) -> str:
    if code is None:
        return "**done**"
    return "NONE" if code is Code.NONE else f"{code.name} ({int(code)})"


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(before + BEGIN + table() + END + rest.partition(END)[2])
