"""Writes docs/refusals.md from the texts in the code: `python -m scripts.refusals_doc`. A test says if it is stale."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.refusal_texts import KINDS, ROOT, Refusal, Sources

DOCUMENT = ROOT / "docs" / "refusals.md"

MEANINGS = {
    "ConfigurationError": ("change it", "a setting, an argument or a job can't work: change the one that is named"),
    "UserCodeError": ("record", "a record, or a function of the job, is at fault: mend the one that is named"),
    "NotJudged": ("not judged", "a check could not be made: nothing is known to be wrong, and nothing to be right"),
    "Unavailable": ("away", "somebody can't be reached now, or did not do what was asked; later it may work"),
    "InputGone": ("input gone", "input is not there any more; the next attempt finds out whether the job goes on"),
    "CheckpointDeclined": ("declined", "one checkpoint failed; the job goes on with the next"),
    "GlobalCommitFailed": ("not committed", "a sink's global committer could not commit a completed checkpoint"),
    "TransactionLost": ("lost", "output of a completed checkpoint is missing: a person decides"),
    "Fenced": ("fenced", "another run has the job: this one ends, and nothing is lost"),
    "CheckpointCorrupted": ("damage", "what is stored can't be trusted: choose another checkpoint, or begin anew"),
    "ForeignFile": ("foreign", "what is stored is whole, and belongs elsewhere"),
    "NewerFormat": ("newer", "a newer twopc has stored it: use that"),
    "TwoPhaseCommitError": ("not done", "a command has not done what it was asked for"),
    "ProtocolViolation": ("bug", "a rule of the protocol was broken: keep the checkpoint folder, and report it"),
}
"""In a word, and in a sentence."""

SECTIONS: dict[str, tuple[str, ...]] = {
    "Brokers, topics, positions and transactions": ("twopc/kafka/",),
    "Schemas and formats": ("twopc/kafka/registry/", "twopc/serde/"),
    "Checkpoints, the ledger and their storage": ("twopc/checkpoints/", "twopc/storage/", "twopc/protocol/"),
    "State": ("twopc/state/", "twopc/inspect/"),
    "A start, a restart and a stop": ("twopc/driver/", "twopc/runtime/", "twopc/worker/", "twopc/faults/"),
    "The job file and its functions": ("twopc/", "twopc/operators/", "twopc/graph/", "twopc/loader/"),
    "The coordinator, and who talks to it": ("coordinator/", "twopc/rpc/"),
    "Spark": ("twopc/spark/",),
    "The command line": ("twopc/cli/",),
    "Verifying, drills, benchmarks and tests": ("twopc/verify/", "twopc/drill/", "twopc/bench/", "twopc/testing/"),
    "Metrics, traces and the page": ("twopc/metrics/", "twopc/tracing/", "twopc/ui/", "twopc/web/"),
}

_VERBS = (
    "add|allow|are|ask|begin|bring|change|check|choose|close|copy|correct|create|delete|did|do|does|drop|end|free|give|go|has|"
    "have|install|is|keep|leave|let|look|make|move|name|open|point|put|raise|read|remove|restore|run|say|see|send|set|start|"
    "stop|take|try|unset|update|upgrade|use|verify|wait|write"
)
_ADVICE = re.compile(rf"(?:: |(?<!\.)\. |; )(?=(?:{_VERBS}|{_VERBS.title()}|To (?:go|move|read))\b)")
LEAST_WORDS = 3
"""With fewer words before it, what looks like advice is still what happened."""

HEAD = """# Refusals

What you see, what it means, and what to type: every message with which twopc refuses, gives up or declines, as the
code has it. Search this page for some words of yours that are not names of your own: what differs from case to case
stands in CAPITALS here, or as `...`. A command that ends with one prints it on its last line, and exits with the number
below. Where the second column is empty, the first says what is wanted. This page is made from the code:
`python -m scripts.refusals_doc`.

| | it means | exit | a job that runs |
|---|---|---|---|
{kinds}
"""


def document() -> str:
    """Return the whole page as the code has it now."""
    refusals = Sources.of().refusals()
    parts = [HEAD.format(kinds="\n".join(map(_kind_row, MEANINGS)))]
    for title, folders in SECTIONS.items():
        there = [each for each in refusals if folder_of(each.module) in folders]
        parts.append(
            f"## {title}\n\n| what you see | what to type, or to look at | it means |\n|---|---|---|\n{_rows(there)}\n"
        )
    return "\n".join(parts)


def folder_of(module: str) -> str:
    """Return the folder by which a module's refusals find their section: the longest that a section has."""
    every = [folder for folders in SECTIONS.values() for folder in folders]
    return max((folder for folder in every if module.startswith(folder)), key=len)


def split(text: str) -> tuple[str, str]:
    """Return what has happened and what to do, which is empty where the first says it all."""
    for found in _ADVICE.finditer(text):
        happened, advice = text[: found.start()], text[found.end() :]
        if len(re.findall(r"\b[a-z]{2,}\b", happened)) >= LEAST_WORDS:
            return happened, advice
    return text, ""


def _kind_row(kind: str) -> str:
    error, (word, sentence) = KINDS[kind], MEANINGS[kind]
    return f"| **{word}** | {sentence} | {error.exit_code} | {'starts again' if error.restartable else 'ends'} |"


def _rows(refusals: Sequence[Refusal]) -> str:
    rows = {(*split(each.text), MEANINGS[each.kind][0]) for each in refusals}
    return "\n".join(
        f"| {' | '.join(map(_cell, row))} |" for row in sorted(rows, key=lambda row: (_without_names(row), row))
    )


def _without_names(row: Iterable[str]) -> list[str]:
    """Rows stand in the order of their words: names come first in many."""
    return [re.sub(r"[A-Z_]{2,}|\W", " ", cell).strip().lower() for cell in row]


def _cell(text: str) -> str:
    return re.sub(r"([\\|*<>\[\]])", r"\\\1", text.replace("\n", " "))


if __name__ == "__main__":
    DOCUMENT.write_text(document())
    sys.stdout.write(f"{DOCUMENT.relative_to(Path.cwd())}: {DOCUMENT.read_text().count(chr(10))} lines\n")
