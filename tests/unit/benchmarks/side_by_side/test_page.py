"""Tests docs/benchmarks.md: how results are put into its table, and that its ratios and sentences agree with the table."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.benchmarks.side_by_side.brokers import SYNC
from lab.benchmarks.side_by_side.page import BEGIN, END, PAGE_COLUMNS, table_of, with_results
from lab.benchmarks.side_by_side.plan import Kind, Load, State
from lab.benchmarks.side_by_side.report import COLUMNS, markdown_row

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
COMPARISON = (ROOT / "docs" / "comparison.md").read_text()


def row(load: str, broker: str, result: str = "1", *, ratio: str = "", wanted: str = "", of_floor: str = "") -> tuple[str, ...]:
    cells = {"load": load, "broker": broker, "result (min, max)": result}
    cells |= {"ratio": ratio, "wanted": wanted, "of floor": of_floor}
    return tuple(cells.get(name, "") for name in COLUMNS)


def page(*rows: tuple[str, ...]) -> str:
    lines = [PAGE_COLUMNS, ("---",) * len(PAGE_COLUMNS), *((*row, "yesterday") for row in rows)]
    return f"# Title\n\n{BEGIN}" + "".join(f"{markdown_row(line)}\n" for line in lines) + f"{END}\n\nThe end, | with a bar.\n"


def results_of(text: str) -> list[tuple[str, str, str, str]]:
    """Returns load, broker, result and day of each row of a page."""
    return [
        (load, broker, cells["result (min, max)"], cells["measured"])
        for load, brokers in table_of(text).items()
        for broker, cells in brokers.items()
    ]


# Results of today


def test_results_replace_the_rows_of_their_loads_and_leave_the_others() -> None:
    before = page(row("a, s", "ours"), row("", "Apache"), row("b, s", "ours"))
    after = with_results(before, [row("a, s", "ours", "2"), row("", "Apache", "3"), row("", "floor", "4")], "today")
    assert results_of(after) == [
        ("a, s", "ours", "2", "today"),
        ("a, s", "Apache", "3", "today"),
        ("a, s", "floor", "4", "today"),
        ("b, s", "ours", "1", "yesterday"),
    ]
    assert (after.startswith("# Title\n\n"), after.endswith(f"{END}\n\nThe end, | with a bar.\n")) == (True, True)


def test_a_load_that_the_page_does_not_have_comes_last() -> None:
    after = with_results(page(row("a, s", "ours")), [row("b, s", "ours"), row("", "Apache")], "today")
    assert [result[:2] for result in results_of(after)] == [("a, s", "ours"), ("b, s", "ours"), ("b, s", "Apache")]


def test_a_page_with_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="no results with the columns load, broker"):
        with_results(f"{BEGIN}| load | broker |\n| --- | --- |\n{END}", [], "today")


def test_the_summary_has_the_ratios_of_transactions_and_the_rows_below_their_target() -> None:
    loads = [Load(Kind.TRANSACTIONS, SYNC, number, state=State.WARM) for number in (1, 32, 128)]
    measured = [
        row(f"{load.name}, {load.unit}", "ours", ratio=ratio, wanted="2.0", of_floor="0.6")
        for load, ratio in zip(loads, ("1.90", "2.00", "3.00"), strict=True)
    ]
    summary = with_results(page(), measured, "today").partition(END)[0].splitlines()[-4:-1]
    assert summary == [
        "- Transactions with SYNC_FLUSH and 1, 32, 128 in flight, as multiples of Apache's: 1.90, 2.00, 3.00 warm.",
        "- Transactions with SYNC_FLUSH and 1, 32, 128 in flight, as shares of the floor: 0.6, 0.6, 0.6 warm.",
        "- Below the target: SYNC transactions 1 in flight, warm 1.90 (wanted 2.0).",
    ]


def test_the_page_is_what_its_own_table_gives() -> None:
    assert with_results(PAGE, [], "today") == PAGE


# Figures of the page


TABLE = table_of(PAGE)


def number(text: str) -> float:
    return float(re.split(r" \(|!", text)[0].replace(",", ""))


def compared(column: str, other: str) -> Iterator[tuple[str, float, float]]:
    """Yields load, stated ratio, and the ratio of the results of the two brokers."""
    for load, brokers in TABLE.items():
        for broker, cells in brokers.items():
            if cells[column] and cells["result (min, max)"] and broker != other:
                this, that = (number(brokers[each]["result (min, max)"]) for each in (broker, other))
                yield load, float(cells[column]), that / this if re.search(r", m?s\b", load) else this / that


@pytest.mark.parametrize(("column", "other"), [("ratio", "Apache"), ("of floor", "floor")])
def test_the_ratios_are_those_of_the_results(column: str, other: str) -> None:
    wrong = [
        (load, stated, ratio) for load, stated, ratio in compared(column, other) if stated != pytest.approx(ratio, abs=0.011)
    ]
    assert wrong == []


def test_the_table_has_results_of_both_brokers() -> None:
    assert len(list(compared("ratio", "Apache"))) >= 20


def ratio(flush: str, in_flight: int, state: str = "warm") -> float:
    return float(TABLE[f"{flush} transactions {in_flight} in flight, {state}, committed/s"]["ours"]["ratio"])


def is_less_everywhere(column: str) -> bool:
    """Returns whether ours is below Apache's in each row in which both were measured."""
    both = [(brokers["ours"][column], brokers["Apache"][column]) for brokers in TABLE.values() if "Apache" in brokers]
    return all(number(ours) < number(apache) for ours, apache in both if ours and apache)


WARM = [ratio(flush, each) for flush in ("SYNC", "ASYNC") for each in (1, 32, 128)]
STATEMENTS = [
    (PAGE, "Warm, ours is ahead of Apache's in each row of transactions", min(WARM) > 1.25),
    (COMPARISON, "it commits more than a warm one of Apache's", min(WARM) > 1.25),
    (
        PAGE,
        "With ASYNC_FLUSH and many in flight ours leads by more in the cold rows",
        all(ratio("ASYNC", each, "cold") > ratio("ASYNC", each) for each in (32, 128)),
    ),
    (
        PAGE,
        "With SYNC_FLUSH and many in flight ours is ahead, warm as well",
        all(ratio("SYNC", each) > 1.25 for each in (32, 128)),
    ),
    (
        PAGE,
        "In each measured row ours uses less CPU time and less memory",
        is_less_everywhere("CPU µs") and is_less_everywhere("MiB"),
    ),
    (PAGE, "Ours drops none", all(brokers["ours"]["dropped"] in ("", "0") for brokers in TABLE.values())),
]


@pytest.mark.parametrize(("text", "words", "is_so"), STATEMENTS, ids=[words for _, words, _ in STATEMENTS])
def test_a_page_says_of_the_results_what_the_table_shows(text: str, words: str, is_so: bool) -> None:
    assert (words in " ".join(re.sub(r"\*\*", "", text).split())) is is_so
