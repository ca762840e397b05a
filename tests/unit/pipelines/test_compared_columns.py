"""docs/reconciliation.md lists each column that a service writes: as compared, or as not compared with a reason."""

import re
from pathlib import Path

from credit_service.adapters.tables import CreditDatabase
from inventory_service.adapters.tables import InventoryDatabase
from order_service.adapters.tables import OrderDatabase
from pipelines.sources.databases.tables import BALANCES, CREDITS, INBOX, ORDER_ITEMS, ORDERS, TRANSACTIONS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reconciliation.md").read_text()
_, _, COMPARED = PAGE.partition("## What is compared")
COMPARED = COMPARED.partition("\n## ")[0]


def named(heading: str) -> set[str]:
    """Returns the columns in the first cells of the table below this heading."""
    part = COMPARED.partition(f"### {heading}\n")[2].partition("\n### ")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", part, re.MULTILINE)
    return {
        f"{table}.{column.strip()}"
        for cell in cells
        for table, columns in re.findall(r"`(\w+)\.([\w, ]+)`", cell)
        for column in columns.split(",")
    }


def test_each_column_of_the_services_is_compared_or_listed_as_not_compared() -> None:
    written = {
        f"{table.name}.{column.name}"
        for database in (OrderDatabase, CreditDatabase, InventoryDatabase)
        for table in database.metadata.tables.values()
        for column in table.columns
    }
    compared, left_out = named("Compared"), named("Not compared")
    assert not compared & left_out
    assert compared | left_out == written


def test_what_is_compared_is_read() -> None:
    tables = (ORDERS, ORDER_ITEMS, TRANSACTIONS, CREDITS, BALANCES, INBOX)
    assert named("Compared") == {f"{table.name}.{column}" for table in tables for column in table.columns}
