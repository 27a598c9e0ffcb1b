from __future__ import annotations

from twopc.report.page import Tone, TonedCell, facts, page, table


def test_what_users_named_is_escaped() -> None:
    html = page("<b>", [facts({"<i>": "<u>"}), table(["<s>"], [["<p>"]])], "<em>")
    assert not {"<b>", "<i>", "<u>", "<s>", "<em>"} & set(html.replace("><", "> <").split())
    assert "&lt;u&gt;" in html


def test_a_page_fetches_nothing() -> None:
    html = page("title", [], "end")
    assert "http" not in html
    assert "<script" not in html


def test_a_word_can_be_toned_and_is_escaped_all_the_same() -> None:
    assert '<td class="tone bad">&lt;b&gt;</td>' in table(["x"], [[TonedCell("<b>", Tone.BAD)]])


def test_a_table_without_a_head_has_none() -> None:
    assert "<th>" not in table([], [["x"]])
