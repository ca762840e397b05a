"""Tests of the benchmark that compares tools for reconciling two tables: its data, the available tools, and its output."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from lab.benchmarks.reconciliation.books import write_books
from lab.benchmarks.reconciliation.report import growth_table, two_tables_table
from lab.benchmarks.reconciliation.runs import Run, RunFailed, Usage
from lab.benchmarks.reconciliation.two_tables.differences import Differences, differences_in_findings, in_books, rows_in_books
from lab.benchmarks.reconciliation.two_tables.rounds import TwoTables, compared_in_turn
from lab.benchmarks.reconciliation.two_tables.tools import Tool, ToolRun, how_to_get, tools_here
from lab.benchmarks.reconciliation.two_tables.with_duckdb import QUERY

ORDERS = 1_010
"""One order has each fault twice, for the first faults."""


def test_the_query_finds_in_the_books_what_was_injected(tmp_path: Path) -> None:
    write_books(tmp_path / "books", ORDERS, 10**9)
    with closing(sqlite3.connect(tmp_path / "books/orders.db")) as database:
        database.execute("ATTACH ? AS of_credits", (str(tmp_path / "books/credits.db"),))
        assert Differences(*database.execute(QUERY).fetchone()) == in_books(ORDERS)
        (rows,) = database.execute("SELECT (SELECT COUNT(*) FROM orders) + (SELECT COUNT(*) FROM credits)").fetchone()
    assert rows == rows_in_books(ORDERS)
    assert in_books(ORDERS) == Differences(orders_left=11, credits_left=4, unequal=4)


def test_what_the_reconciliation_tells_of_more_than_two_tables_is_left_out() -> None:
    counts = {
        "matched": 900, "missing_credit": 11, "credit_without_order": 2, "double_credit": 2, "amount_mismatch": 2,
        "wrong_customer": 2, "items_mismatch": 1,
    }  # fmt: skip
    findings = [{"finding": finding, "count": count} for finding, count in counts.items()]
    assert differences_in_findings(findings) == Differences(orders_left=11, credits_left=4, unequal=4)


def test_tools_that_are_not_installed_are_left_out_with_a_sentence_that_says_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "duckdb").mkdir()
    (tmp_path / "duckdb" / "__init__.py").write_text("")
    here = tools_here(tmp_path)
    assert [tool for tool in here if tool is not Tool.DATACOMPY] == [Tool.OURS, Tool.DUCKDB]
    sentence = how_to_get([Tool.DATACOMPY], Path("data/comparison"))
    assert sentence.startswith("To measure datacompy too, install ")
    assert " -m pip install --target data/comparison datacompy duckdb " in sentence


def tool_run(tool: Tool, wall_s: float, found: Differences | None = None) -> ToolRun:
    return ToolRun(tool, Usage(wall_s, wall_s, 10**9), found or in_books(ORDERS))


def test_tools_take_turns_and_one_that_fails_is_named_and_asked_no_more() -> None:
    asked = []

    def run(tool: Tool) -> ToolRun:
        asked.append(tool)
        if tool is Tool.DATACOMPY:
            raise RunFailed("no memory")
        return tool_run(tool, len(asked))

    compared = compared_in_turn(ORDERS, list(Tool), 3, run)
    assert asked == [*Tool, Tool.OURS, Tool.DUCKDB, Tool.OURS, Tool.DUCKDB]
    assert compared.failed == ("datacompy: no memory",)
    assert not compared.is_right
    ours = compared.result(Tool.OURS)
    assert ours is not None
    assert (ours.wall_s, ours.min_and_max_s, ours.is_right) == (4, (1, 6), True)
    assert compared.result(Tool.DATACOMPY) is None


def two_tables(orders: int, ours_s: float, duckdb_s: float) -> TwoTables:
    times = {Tool.OURS: ours_s, Tool.DUCKDB: duckdb_s}
    return compared_in_turn(orders, list(times), 1, lambda tool: tool_run(tool, times[tool], in_books(orders)))


def shown(table: object) -> list[str]:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(table)
    return [" ".join(line.replace("│", " ").split()) for line in captured.get().splitlines()]


def test_the_table_has_our_time_by_theirs() -> None:
    lines = shown(two_tables_table(two_tables(1_000, 6.0, 2.0)))
    assert "ours 6.0 6.0 6.0 332 6 1.0 all" in lines
    assert "DuckDB 2.0 2.0 2.0 997 2 1.0 3.00 all" in lines


def test_the_table_of_large_books_fits_80_columns_with_every_figure_in_one_piece() -> None:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(two_tables_table(two_tables(10_000_000, 1234.5, 1111.5)))
    assert max(map(len, captured.get().splitlines())) <= 80
    assert len(re.findall(r"^(?:ours|DuckDB) .*all +$", captured.get(), re.MULTILINE)) == 2


def test_a_tool_that_finds_too_little_is_marked() -> None:
    wrong = compared_in_turn(1_000, [Tool.OURS], 1, lambda tool: tool_run(tool, 1.0, Differences(0, 0, 0)))
    assert not wrong.is_right
    assert "ours 1.0 1.0 1.0 1,994 1 1.0 wrong" in shown(two_tables_table(wrong))


def test_growth_is_told_from_the_smallest_books_on() -> None:
    runs = [Run(orders, None, Usage(wall_s, wall_s, 1), (), 0) for orders, wall_s in ((10_000, 44.0), (1_000, 10.0))]
    table = growth_table(runs, [two_tables(1_000, 6.0, 2.0), two_tables(10_000, 12.0, 18.0)])
    lines = shown(table)
    assert "ours, with its commit log 10,000 10.0 4.4" in lines
    assert "ours 10,000 10.0 2.0" in lines
    assert "DuckDB 10,000 10.0 9.0" in lines


@pytest.mark.parametrize("count", [0, 1])
def test_one_size_shows_no_growth(count: int) -> None:
    assert growth_table([Run(1_000, None, Usage(1.0, 1.0, 1), (), 0)] * count, []) is None
