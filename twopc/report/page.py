"""One HTML page from headings, tables and charts; everything that is not ours is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #66707b; --rule: #d8dee4; --paper: #fff;
  --c0: #0a66c2; --c1: #c2410c; --c2: #15803d; --c3: #7e22ce; --good: #15803d; --bad: #b91c1c; --doubt: #a16207; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa4ae; --rule: #30363d; --paper: #0d1117;
  --c0: #58a6ff; --c1: #fb923c; --c2: #4ade80; --c3: #c084fc; --good: #4ade80; --bad: #f87171; --doubt: #facc15; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid var(--rule);
  font-variant-numeric: tabular-nums; vertical-align: top; }
td:last-child { overflow-wrap: anywhere; }
.tone { font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); } .doubt { color: var(--doubt); }
figure { margin: .5rem 0 1rem; overflow-x: auto; }
svg { display: block; width: 100%; min-width: 40rem; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg .title { fill: var(--ink); font-size: 13px; font-weight: 600; }
svg .end { text-anchor: end; } svg .mid, svg .label { text-anchor: middle; }
svg .grid { stroke: var(--rule); } svg .line { fill: none; stroke-width: 1.6; }
svg .bar { fill: var(--c0); }
svg .mark.c0 { fill: var(--c0); } svg .mark.c1 { fill: var(--c1); }
svg .mark.c2 { fill: var(--c2); } svg .mark.c3 { fill: var(--c3); }
svg .line.c0 { stroke: var(--c0); } svg .line.c1 { stroke: var(--c1); }
svg .line.c2 { stroke: var(--c2); } svg .line.c3 { stroke: var(--c3); }
svg .legend.c0 { fill: var(--c0); } svg .legend.c1 { fill: var(--c1); }
svg .legend.c2 { fill: var(--c2); } svg .legend.c3 { fill: var(--c3); }
footer { color: var(--soft); margin-top: 2rem; }
"""


class Tone(Enum):
    """The tone of a word; the value is its name in the style."""

    GOOD = "good"
    BAD = "bad"
    DOUBT = "doubt"


@dataclass(frozen=True, slots=True)
class TonedCell:
    """A cell of a table that is to be seen at once."""

    text: str
    tone: Tone


def page(title: str, parts: Sequence[str], footer: str) -> str:
    """Return a whole HTML document; `parts` are HTML, as the functions here and the charts make it."""
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{body}\n<footer>{escape(footer)}</footer></body></html>\n"
    )


def heading(text: str) -> str:
    """Return a heading inside the page, escaped."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str) -> str:
    """Return a paragraph, escaped."""
    return f"<p>{escape(text)}</p>"


def facts(values: Mapping[str, object]) -> str:
    """Return a table of names and values."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in values.items())
    return f"<table>{rows}</table>"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; with a head, unless that is empty."""
    top = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if head else ""
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table>{top}{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, TonedCell):
        return f'<td class="tone {value.tone.value}">{escape(value.text)}</td>'
    return f"<td>{escape(str(value))}</td>"
