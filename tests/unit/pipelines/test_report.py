"""Tests the output of the reconciliation."""

import pytest
from rich.console import Console

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import FindingTotal, Money, Tolerance
from pipelines.reporting.report import (
    classes_without_findings,
    explanations,
    findings_table,
    inbox_lines,
    say,
    times_text,
    unchecked_repairs,
    verdict_text,
)

ALL_FAIL = Tolerance()


def totals(**found: FindingTotal) -> list[FindingTotal]:
    return [found.get(finding.value, FindingTotal(finding)) for finding in Finding]


def shown(found: list[FindingTotal], as_of_ms: int = 1_000) -> str:
    console = Console(width=140)
    with console.capture() as captured:
        console.print(findings_table(found, CutOff(as_of_ms, 0), ALL_FAIL))
    return captured.get()


MATCHED = FindingTotal(Finding.MATCHED, 1_380, (Money("EUR", 100, 100, 0, 1_379), Money("USD", 250, 250, 0, 1)), (), 1_380, 1_380)


def test_order_ids_are_no_markup_and_no_commands_for_the_terminal() -> None:
    assert "[/bold]\\x1b[2J" in shown([FindingTotal(Finding.MATCHED, 1, sample_order_ids=("[/bold]\x1b[2J",))])


def test_only_classes_with_findings_have_a_row_with_the_amounts_of_each_currency() -> None:
    table = shown(totals(matched=MATCHED))
    assert all(words in table for words in ("matched", "1.00 EUR", "2.50 USD"))
    assert "missing credit" not in table


def test_causes_are_told_and_the_age_of_what_is_on_its_way() -> None:
    waiting = FindingTotal(Finding.IN_FLIGHT, 3, causes=((Cause.PENDING, 2), (Cause.NOT_CONSUMED, 1)), oldest_ms=1_000)
    table = shown(totals(in_flight=waiting), as_of_ms=7_201_000)
    assert "2 pending" in table
    assert "1 not consumed" in table
    assert "oldest 2 h" in table


def test_a_cause_of_some_is_told_with_its_count_and_one_of_all_without() -> None:
    some = FindingTotal(Finding.REVERSED, 12, causes=((Cause.REPAIRED, 2),))
    assert "2 repaired" in shown(totals(reversed=some))
    every = FindingTotal(Finding.REVERSED, 2, causes=((Cause.REPAIRED, 2),))
    assert "2 repaired" not in (table := shown(totals(reversed=every)))
    assert "repaired" in table


def test_repairs_that_are_believed_are_told_unless_an_audit_was_read() -> None:
    found = totals(matched=MATCHED, reversed=FindingTotal(Finding.REVERSED, 12, causes=((Cause.REPAIRED, 1),)))
    told = "1 repaired order was accepted unchecked: no audit file was given (--audit PLAN.audit.jsonl)"
    assert unchecked_repairs(found, is_audited=False) == told
    assert unchecked_repairs(found, is_audited=True) is None
    assert unchecked_repairs(totals(matched=MATCHED), is_audited=False) is None


def test_messages_in_the_inbox_are_told_by_reason_with_their_number_and_age() -> None:
    def stored(cause: str, error: str | None, received_at_ms: int | None, count: int = 1) -> dict[str, object]:
        return {"cause": cause, "last_error": error, "received_at_ms": received_at_ms, "count": count}

    rows = [
        stored("waiting", None, 3_600_000),
        stored("waiting", None, 3_590_000, 2),
        stored("parked", "Error: \x1b[2J", 0),
        stored("parked", "Error: of a row without a time", None),
        stored("not_consumed", "of another cause", 1),
    ]
    assert inbox_lines(rows, CutOff(7_200_000, 0)) == [
        "parked in the inbox: 1 order, the oldest for 2 h: Error: \\x1b[2J",
        "parked in the inbox: 1 order: Error: of a row without a time",
        "waiting in the inbox: 3 orders, the oldest for 1 h: not tried yet",
    ]
    many = [stored("waiting", f"Error: {number}", 1) for number in range(7)]
    assert inbox_lines(many, CutOff(1, 0))[5:] == ["2 more reasons"]
    assert inbox_lines([], CutOff(1, 0)) == []


def test_the_other_classes_are_one_line() -> None:
    assert classes_without_findings(totals(matched=MATCHED)) == f"{len(Finding) - 1} other classes: none"
    assert classes_without_findings([MATCHED]) is None


def test_what_fails_is_explained_with_its_causes() -> None:
    lost = FindingTotal(Finding.MISSING_CREDIT, 1, causes=((Cause.DEAD_LETTER, 1),))
    told = explanations(totals(matched=MATCHED, missing_credit=lost), ALL_FAIL)
    assert told[0] == "missing credit: an order without a credit, although its transaction is COMMITTED"
    assert told[1].startswith("  dead letter: the message is a dead letter")
    assert len(told) == 2


def test_consistent_books_are_told_with_their_numbers_and_young_orders_count() -> None:
    young = FindingTotal(Finding.IN_FLIGHT, 2, order_count=2)
    for found, orders in ((totals(matched=MATCHED), "1,380"), (totals(matched=MATCHED, in_flight=young), "1,382")):
        assert verdict_text(found, ALL_FAIL) == f"consistent: {orders} orders, 1,380 credits, 0 lost, 0 doubled"


def test_everything_that_is_wrong_is_in_the_verdict() -> None:
    told = verdict_text(
        totals(
            matched=MATCHED,
            missing_credit=FindingTotal(Finding.MISSING_CREDIT, 1, order_count=1),
            double_credit=FindingTotal(Finding.DOUBLE_CREDIT, 2, order_count=2, credit_count=5),
            credit_without_order=FindingTotal(Finding.CREDIT_WITHOUT_ORDER, 3, credit_count=3),
            balance_mismatch=FindingTotal(Finding.BALANCE_MISMATCH, 1),
        ),
        ALL_FAIL,
    )
    assert told == ("inconsistent: 1,383 orders, 1,388 credits, 1 lost, 2 doubled, 3 credit without order, 1 balance mismatch")


def test_what_is_allowed_is_not_in_the_verdict() -> None:
    overdue = FindingTotal(Finding.OVERDUE, 2, order_count=2)
    told = verdict_text(totals(overdue=overdue), Tolerance(frozenset({Finding.OVERDUE})))
    assert told == "consistent: 2 orders, 0 credits, 0 lost, 0 doubled"


def test_the_start_and_the_comparison_are_timed_apart() -> None:
    assert times_text(9.14, 28.27) == "Spark started in 9.1 s, and compared in 28.3 s."


def test_a_line_shows_an_id_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    say("order:key:1 [red]:x: \x1b")
    assert capsys.readouterr().out == "order:key:1 [red]:x: \\x1b\n"
