"""Tests that a value with a wrong type is reported with table and row, and does not prevent other values from being read."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from pipelines.judging.classes import Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import Tolerance
from pipelines.reporting.report import faults_without_order
from pipelines.sources.databases.adbc import BATCH_ROWS
from pipelines.sources.databases.tables import read_unreadable_values, read_wrong_balances
from tests.component.pipelines.conftest import Judge, ShopDatabases

ODD = (0.6, "12abc", b"\x00\xff", 9.3e18, float("inf"), None)
NO_UTF8 = b"a\xffda"


def told(shop: ShopDatabases) -> list[str]:
    return read_unreadable_values(shop.order_database, shop.credit_database)


def put(shop: ShopDatabases, table: str, column: str, value: Any) -> None:
    """Writes the value to the first row."""
    connection = shop.credits if table in ("credits", "balances") else shop.orders
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = (SELECT MIN(rowid) FROM {table})", (value,))
    connection.commit()


INTEGERS = [
    ("orders", "total_cents"),
    ("orders", "created_at_ms"),
    ("order_items", "quantity"),
    ("order_items", "price_cents"),
    ("transactions", "created_at_ms"),
    ("credits", "points"),
    ("credits", "amount_cents"),
    ("credits", "created_at_ms"),
    ("balances", "points"),
]
TEXTS = [("orders", "order_id"), ("transactions", "state"), ("credits", "customer")]


@pytest.mark.parametrize(
    ("place", "value"), [*itertools.product(INTEGERS, ODD), *itertools.product(TEXTS, (b"\x00\xff", None))], ids=repr
)
def test_what_is_no_integer_or_no_text_is_named_with_table_row_and_column(
    shop: ShopDatabases, place: tuple[str, str], value: object
) -> None:
    table, column = place
    shop.add_orders(["a", "b"])
    shop.add_credits(["a", "b"])
    assert told(shop) == []
    put(shop, table, column, value)
    (one,) = told(shop)
    assert one.startswith(f"{table} row 1: {column}: ")


def test_text_that_is_no_utf8_is_named_and_other_text_is_not(shop: ShopDatabases) -> None:
    shop.add_orders(["a", "b"], customer="李")
    shop.orders.execute("UPDATE orders SET customer = CAST(? AS TEXT) WHERE id = 2", (NO_UTF8,))
    shop.orders.commit()
    assert told(shop) == ["orders row 2: customer: not UTF-8: b'a\\xffda'"]


def test_text_that_is_no_utf8_is_found_after_a_whole_batch_without_text(shop: ShopDatabases) -> None:
    shop.orders.executemany(
        "INSERT INTO transactions VALUES (?, NULL, 'ROLLED_BACK', 1, 'order')", [(f"m{number}",) for number in range(BATCH_ROWS)]
    )
    shop.orders.execute("INSERT INTO transactions VALUES ('last', CAST(? AS TEXT), 'COMMITTED', 1, 'order')", (NO_UTF8,))
    shop.orders.commit()
    assert told(shop) == ["transactions row 65537: order_id: not UTF-8: b'a\\xffda'"]


def test_columns_that_may_be_empty_are(shop: ShopDatabases) -> None:
    shop.add_orders(["a"])
    shop.orders.execute("INSERT INTO transactions VALUES ('t', NULL, 'ROLLED_BACK', 1, 'order')")
    shop.orders.commit()
    assert told(shop) == []


def test_one_odd_value_of_each_kind_hides_no_other_finding(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    ids = [f"o-{number}" for number in range(9)]
    shop.add_orders([*ids, "lost"])
    shop.add_credits(ids)
    odd = ("0.6", "'12abc'", "x'00ff'", "9.3e18", "NULL")
    for number, value in enumerate(odd, 2):
        shop.orders.execute(f"UPDATE orders SET total_cents = {value} WHERE id = {number}")
        shop.credits.execute(f"UPDATE credits SET created_at_ms = {value} WHERE id = {number}")
    shop.orders.execute("UPDATE orders SET customer = CAST(? AS TEXT) WHERE id = 8", (NO_UTF8,))
    shop.orders.execute("UPDATE orders SET order_id = x'00ff' WHERE id = 9")
    shop.credits.execute("UPDATE balances SET points = 21.9")
    shop.orders.commit()
    shop.credits.commit()
    outcome = judge(shop.books(), CutOff(10_000_000), str(tmp_path))
    found = {row["order_id"]: row["finding"] for row in outcome.rows if row["order_id"] is not None}
    assert found["lost"] == Finding.MISSING_CREDIT
    assert {found[f"o-{number}"] for number in range(1, 6)} == {Finding.AMOUNT_MISMATCH}
    assert found["o-7"] == Finding.WRONG_CUSTOMER
    assert found["(unreadable) in row 9"] == Finding.MISSING_CREDIT
    assert "o-0" not in found
    totals = {total.finding: total.count for total in outcome.totals}
    assert totals[Finding.UNREADABLE_VALUE] == 2 * len(odd) + 3
    assert totals[Finding.BALANCE_MISMATCH] == 1
    assert not Tolerance().is_consistent(outcome.totals)
    assert faults_without_order(outcome.rows)[0] == "unreadable value: balances row 1: points: real 21.9"
    assert faults_without_order(outcome.rows)[-1] == "8 more unreadable values"


def test_points_that_add_up_to_more_than_a_column_holds_are_one_wrong_balance(shop: ShopDatabases) -> None:
    shop.add_credits(["a", "b", "c"])
    shop.credits.execute("UPDATE credits SET points = 9223372036854775807 WHERE id < 3")
    shop.credits.execute("UPDATE credits SET points = -3, customer = 'bob' WHERE id = 3")
    shop.credits.execute("INSERT INTO balances VALUES ('bob', -3)")
    shop.credits.commit()
    assert read_wrong_balances(shop.credit_database).to_pylist() == [
        {"customer": "ada", "points": 9223372036854775807, "balance": 36, "balances": 1}
    ]
