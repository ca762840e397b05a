"""A judge who believes nobody: books that were changed on purpose are found, each with its class and cause; odd ones are not."""

from pathlib import Path

from pyspark.sql import SparkSession

from pipelines.judging.classes import CONSISTENT
from pipelines.judging.totals import SUMMED
from tests.component.pipelines.strange_books import ALL, RIGHT, TITLES, WRONG, judged


def test_strange_books_are_found_by_class_and_cause_and_odd_ones_are_not_accused(spark: SparkSession, tmp_path: Path) -> None:
    expected = {name: None if book.finding in SUMMED else (book.finding, book.cause) for name, book in ALL.items()}
    assert judged(spark, tmp_path) == expected


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(ALL) == sum(map(len, TITLES.values())), "each name once"
    assert len(WRONG) >= 125
    assert len(RIGHT) >= 24
    assert all(book.finding not in CONSISTENT for book in WRONG.values())
    assert all(book.finding in CONSISTENT for book in RIGHT.values())
