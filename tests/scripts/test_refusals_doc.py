"""The page of all refusals: what the code says, in two parts, and what each kind means."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.refusal_texts import KINDS, Refusal, Sources
from scripts.refusals_doc import DOCUMENT, MEANINGS, document, split

WORDS = """
HOW = "give it another name"
def too_many(count, most):
    return f"there are {count} of it, and {most} at most"
"""
CODE = """
from twopc.errors import ConfigurationError, Unavailable
from words import HOW, too_many

class Away(Unavailable):
    pass

def plain(job):
    raise ConfigurationError(f"job {job.name!r} is there already: {HOW}")

def returned(found):
    raise ConfigurationError(too_many(len(found), 7))

def kept(name, known):
    said = f"nobody knows {name}, " + f"but {', '.join(known)}"
    error = Away(said)
    raise Unavailable("nobody answers to it" if known else f"nobody answers to {name.title()[1:]}") from error

def passed_on(error):
    raise Unavailable(str(error))
"""


def test_the_page_is_what_the_code_says() -> None:
    assert DOCUMENT.read_text() == document(), "stale: python -m scripts.refusals_doc"


def test_every_kind_of_error_has_a_meaning() -> None:
    assert set(MEANINGS) == set(KINDS)


def test_a_text_is_followed_through_constants_variables_and_functions_and_an_error_passed_on_is_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "twopc").mkdir()
    (tmp_path / "twopc" / "words.py").write_text(WORDS)
    (tmp_path / "twopc" / "code.py").write_text(CODE)
    assert Sources.of(tmp_path).refusals() == [
        Refusal(text, kind, "twopc/code.py")
        for text, kind in (
            ("job NAME is there already: give it another name", "ConfigurationError"),
            ("nobody answers to ...", "Unavailable"),
            ("nobody answers to it", "Unavailable"),
            ("nobody knows NAME, but KNOWN", "Unavailable"),
            ("there are COUNT of it, and MOST at most", "ConfigurationError"),
        )
    ]


@pytest.mark.parametrize(
    ("text", "happened", "advice"),
    [
        ("topic T is not there: create it, or name another", "topic T is not there", "create it, or name another"),
        ("it is gone for good. To go on, say so: --x", "it is gone for good", "To go on, say so: --x"),
        ("STEP: write to one topic only", "STEP: write to one topic only", ""),
        ("no coordinator answers at A: is it started?", "no coordinator answers at A", "is it started?"),
        ("it has ... is kept", "it has ... is kept", ""),
        ("record WHERE has the name: NAME", "record WHERE has the name: NAME", ""),
    ],
)
def test_what_to_do_begins_where_a_sentence_asks_or_tells_to(text: str, happened: str, advice: str) -> None:
    assert split(text) == (happened, advice)
