"""Both pages have the table of Apache's names, and each row names existing code, a test and a chapter."""

import re
from pathlib import Path

import pytest

from deploy.scripts.from_the_article import PAGES, ROOT, VERDICTS, ArticlePageError, Row, line_of, page_text, rows

ROWS = [row for step in rows().values() for row in step]
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.apache)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@each_page
def test_the_page_has_the_rows_as_they_are_now(page: Path) -> None:
    assert page.read_text() == page_text(page), "renew it: python -m deploy.scripts.from_the_article"


@each_page
def test_the_page_has_the_rows_of_each_step(page: Path) -> None:
    assert re.findall(r"^<!-- rows: (\w+) -->$", page.read_text(), re.MULTILINE) == list(rows())


def test_each_name_has_one_row() -> None:
    assert len({row.apache for row in ROWS}) == len(ROWS) > 80


@each_row
def test_a_row_says_the_same_in_both_languages_and_names_a_test(row: Row) -> None:
    assert row.verdict in VERDICTS
    assert set(re.findall("`.*?`", row.why)) == set(re.findall("`.*?`", row.why_zh))
    assert re.fullmatch(r"(tests|tutorials)/(\w|[/-])*/test_\w+\.py::test_\w+", row.test)


def test_the_line_of_a_symbol_is_found() -> None:
    here = "tests/unit/scripts/test_from_the_article.py"
    lines = (ROOT / here).read_text().splitlines()
    assert lines[line_of(f"{here}::ROWS") - 1].startswith("ROWS = ")
    assert lines[line_of(f"{here}::each_row") - 1].startswith("each_row = ")
    assert (
        "def line_of"
        in (ROOT / "deploy/scripts/from_the_article.py")
        .read_text()
        .splitlines()[line_of("deploy/scripts/from_the_article.py::line_of") - 1]
    )
    assert line_of(here) == 1


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("deploy/scripts/nothing.py", "does not exist"),
        ("deploy/scripts/from_the_article.py::nothing", "does not define nothing"),
        ("deploy/scripts/from_the_article.py::Row.nothing", r"does not define Row\.nothing"),
    ],
)
def test_a_place_that_does_not_exist_is_an_error(place: str, words: str) -> None:
    with pytest.raises(ArticlePageError, match=words):
        line_of(place)
