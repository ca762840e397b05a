"""Tests the page as an HTML file: its escaping, its contents, and how it is written."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import UnwritableOutput
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import Tolerance
from pipelines.reporting.page.page import page_of, write_page
from tests.unit.pipelines.page.rows import AS_OF_MS, matched, outcome, row

CUT_OFF = CutOff(AS_OF_MS)
HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"


def page(*rows: dict[str, Any]) -> str:
    return page_of(outcome(*rows), CUT_OFF, Tolerance())


class Tags(HTMLParser):
    """A parser that collects the tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_what_comes_from_the_books_is_text_and_nothing_else() -> None:
    names = {"order_id": HOSTILE, "customer": HOSTILE, "transaction_id": HOSTILE, "currency": "<b>"}
    text = page(row("missing_credit", cause="unknown", order_cents=5, at_stake_cents=5, **names))
    assert "script" not in Tags(text).tags
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J" in text


def test_the_page_needs_no_other_file_and_no_network() -> None:
    tags = Tags(page(matched(3, latency_step=9), row("in_flight", cause="young")))
    assert not {"script", "link", "img", "iframe"} & set(tags.tags)
    assert not [name for name, _ in tags.attributes if name in ("src", "href") or name.startswith("on")]


def test_the_verdict_and_each_break_are_on_it() -> None:
    text = page(matched(3, latency_step=9), row("missing_credit", cause="dead_letter", order_id="lost-1"))
    assert "inconsistent: 4 orders, 3 credits, 1 lost, 0 doubled" in text
    assert "lost-1" in text
    assert "the message is a dead letter" in text


def test_empty_books_have_a_page() -> None:
    assert "consistent: nothing to compare" in page()


def test_a_page_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "page.html"
    for _ in range(2):
        write_page(path, outcome(), CUT_OFF, Tolerance())
    assert [found.name for found in path.parent.iterdir()] == ["page.html"]


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableOutput, match=r"report .*page\.html: "):
        write_page(tmp_path / "file" / "page.html", outcome(), CUT_OFF, Tolerance())
