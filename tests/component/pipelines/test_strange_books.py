"""Tests that manipulated data is reported with its class and cause, and that unusual but correct data is not reported."""

from dataclasses import replace
from pathlib import Path

from pipelines.embedded import reconcile_embedded
from pipelines.judging.classes import CONSISTENT
from pipelines.judging.totals import SUMMED
from pipelines.reporting.report import unchecked_repairs
from tests.component.pipelines.broken_books import CUT_OFF
from tests.component.pipelines.conftest import Judge
from tests.component.pipelines.strange_books import ALL, IDS, OF_REPAIRS, PARTS, RIGHT, WRONG, judged, written


def test_strange_books_are_found_by_class_and_cause_and_odd_ones_are_not_accused(judge: Judge, tmp_path: Path) -> None:
    expected = {name: None if book.finding in SUMMED else (book.finding, book.cause) for name, book in ALL.items()}
    assert judged(judge, tmp_path) == expected


def test_without_an_audit_every_repair_is_believed_and_one_line_says_so(tmp_path: Path) -> None:
    """Without an audit, repaired orders are not reported, and one line says how many were accepted unchecked."""
    outcome = reconcile_embedded(replace(written(tmp_path), read_repairs=None), CUT_OFF, str(tmp_path / "out"))
    found = {row["order_id"]: row["finding"] for row in outcome.rows}
    assert [name for name in OF_REPAIRS if IDS[name] in found] == []
    believed = unchecked_repairs(outcome.totals, is_audited=False)
    right = [name for name in RIGHT if "by a repair" in name]
    assert believed == (
        f"{len(OF_REPAIRS) + len(right)} repaired orders were accepted unchecked: "
        "no audit file was given (--audit PLAN.audit.jsonl)"
    )
    assert unchecked_repairs(outcome.totals, is_audited=True) is None


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(ALL) == sum(map(len, PARTS)), "each name once"
    assert len(WRONG) >= 131
    assert len(RIGHT) >= 24
    assert all(book.finding not in CONSISTENT for book in WRONG.values())
    assert all(book.finding in CONSISTENT for book in RIGHT.values())
