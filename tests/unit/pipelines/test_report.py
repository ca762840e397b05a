"""What the reconciliation prints beside its table."""

from rich.console import Console

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import ABOUT_ORDERS, Finding, FindingTotal
from pipelines.report import classes_without_findings, findings_table, times_told, verdict_told


def totals(**found: FindingTotal) -> list[FindingTotal]:
    return [found.get(finding.value, FindingTotal(finding, 0, 0, 0)) for finding in ABOUT_ORDERS]


MATCHED = FindingTotal(Finding.MATCHED, 1_380, 100, 100, order_count=1_380, credit_count=1_380)


def test_order_ids_are_no_markup_and_no_commands_for_the_terminal() -> None:
    hostile = FindingTotal(Finding.MATCHED, 1, 1, 1, sample_order_ids=("[/bold]\x1b[2J",))
    console = Console(width=120)
    with console.capture() as shown:
        console.print(findings_table([hostile], CutOff(1_000, 0)))
    assert "[/bold]\\x1b[2J" in shown.get()


def test_only_classes_with_findings_have_a_row() -> None:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(findings_table(totals(matched=MATCHED), CutOff(1_000, 0)))
    assert "matched" in shown.get()
    assert "missing credit" not in shown.get()


def test_the_other_classes_are_named_in_one_line() -> None:
    told = classes_without_findings(totals(matched=MATCHED))
    assert told is not None
    assert told.startswith("8 other classes: none (in flight, missing credit, credit without order, ")
    assert classes_without_findings([MATCHED]) is None


def test_consistent_books_are_told_with_their_numbers() -> None:
    assert verdict_told(totals(matched=MATCHED)) == "consistent: 1,380 orders, 1,380 credits, 0 lost, 0 doubled"


def test_young_orders_count_as_orders() -> None:
    young = FindingTotal(Finding.IN_FLIGHT, 2, 100, 0, order_count=2, credit_count=0)
    assert verdict_told(totals(matched=MATCHED, in_flight=young)) == "consistent: 1,382 orders, 1,380 credits, 0 lost, 0 doubled"


def test_everything_that_is_wrong_is_in_the_verdict() -> None:
    told = verdict_told(
        totals(
            matched=MATCHED,
            missing_credit=FindingTotal(Finding.MISSING_CREDIT, 1, 50, 0, order_count=1),
            double_credit=FindingTotal(Finding.DOUBLE_CREDIT, 2, 100, 250, order_count=2, credit_count=5),
            credit_without_order=FindingTotal(Finding.CREDIT_WITHOUT_ORDER, 3, 0, 60, credit_count=3),
            rolled_back_order=FindingTotal(Finding.ROLLED_BACK_ORDER, 1, 10, 0, order_count=1),
        )
    )
    assert told == ("inconsistent: 1,383 orders, 1,388 credits, 1 lost, 2 doubled, 3 credit without order, 1 rolled back order")


def test_the_start_and_the_comparison_are_timed_apart() -> None:
    assert times_told(9.14, 28.27) == "Spark started in 9.1 s, and compared in 28.3 s."
