"""Tests of the commands' output and of audits.

Output to files and programs is not truncated, and repairs are checked against audits.
"""

import json
import time
from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from pipelines.commands import command_line
from tests.component.pipelines.broken_books import BrokenBooks, consumed
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter

NARROW = {"COLUMNS": "40"}
AT_MS = 1_700_000_000_000
LONG_ID = "order-of-the-shop-{}-0123456789abcdef"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command_line.application, list(map(str, arguments)), env=NARROW)


def reconciled(shop: ShopDatabases, books: BrokenBooks, folder: Path, *more: str | Path) -> Result:
    books.log.consume()
    urls = ("--order-database-url", shop.orders_url, "--credit-database-url", shop.credits_url)
    return run("reconcile", *urls, "--engine", "sqlite", "--store", books.log.store, "--output", folder / "out", *more)


@pytest.fixture
def books(shop: ShopDatabases, tmp_path: Path) -> BrokenBooks:
    return BrokenBooks(shop, LogWriter(tmp_path / "store"), at_ms=AT_MS)


def test_messages_in_the_inbox_are_told_with_their_reason_and_the_command_for_parked_ones(
    shop: ShopDatabases, tmp_path: Path, books: BrokenBooks
) -> None:
    for order_id, status in (("parks", "PARKED"), ("fails", "FAILED")):
        consumed(books, order_id)
        books.store(order_id, status)
    page = tmp_path / "page.html"
    done = reconciled(shop, books, tmp_path, "--report", page, "--overdue-seconds", 2**40)
    assert done.exit_code == 1
    assert "parked in the inbox: 1 order, the oldest for " in done.stdout
    assert ": OperationalError: parks fails" in done.stdout
    assert "run python -m credit_service inbox retry" in done.stdout
    assert "waiting in the inbox: 1 order, the oldest for " in done.stdout
    text = page.read_text()
    assert "parked in the inbox: 1 order" in text
    assert "stored in the inbox" in text
    assert "the credit service failed: OperationalError: fails fails" in text
    told = json.loads(reconciled(shop, books, tmp_path, "--json", "--overdue-seconds", 2**40).stdout)
    assert told["inbox"] == [
        {"cause": cause, "last_error": f"OperationalError: {o} fails", "count": 1, "oldest_received_at_ms": AT_MS}
        for cause, o in (("parked", "parks"), ("waiting", "fails"))
    ]


def test_repairs_are_held_to_their_audits(shop: ShopDatabases, tmp_path: Path, books: BrokenBooks) -> None:
    for order_id in ("known", "unknown"):
        books.health(order_id)
        books.cancel(order_id)
    books.reverse("known", message_id="repair 1")
    books.write_audit(tmp_path / "first.jsonl")
    books.reverse("unknown", message_id="repair 2")
    books.audited = books.audited[1:]
    books.write_audit(tmp_path / "second.jsonl")

    believing = reconciled(shop, books, tmp_path)
    assert believing.exit_code == 0, believing.output
    assert "2 repaired orders were accepted unchecked: no audit file was given" in believing.output
    assert json.loads(reconciled(shop, books, tmp_path, "--json").stdout)["repairs_believed"] == 2

    first = reconciled(shop, books, tmp_path, "--audit", tmp_path / "first.jsonl", "--json")
    assert first.exit_code == 1
    told = json.loads(first.stdout)
    assert told["repairs_believed"] == 0
    assert {one["finding"]: (one["causes"], one["order_ids"]) for one in told["findings"]} == {
        "reversed": ({"repaired": 1}, []),
        "reversal_mismatch": ({"unaudited": 1}, ["unknown"]),
    }

    both = reconciled(shop, books, tmp_path, "--audit", tmp_path / "first.jsonl", "--audit", tmp_path / "second.jsonl")
    assert both.exit_code == 0, both.output
    assert "believed" not in both.output

    away = reconciled(shop, books, tmp_path, "--audit", tmp_path / "away.jsonl")
    assert away.exit_code == 2
    assert f"could not tell: audit {tmp_path}/away.jsonl: No such file or directory" in away.output


def test_a_table_of_findings_that_no_terminal_shows_is_not_cut(shop: ShopDatabases, tmp_path: Path, books: BrokenBooks) -> None:
    order_ids = [LONG_ID.format(number) for number in range(3)]
    for order_id in order_ids:
        consumed(books, order_id)
    breaks = tmp_path / "breaks.db"
    found = reconciled(shop, books, tmp_path, "--breaks", breaks)
    assert found.exit_code == 1
    assert all(order_id in found.stdout for order_id in order_ids)
    assert "…" not in found.stdout

    listed = run("breaks", "list", "--breaks", breaks)
    lines = listed.stdout.splitlines()
    assert listed.exit_code == 0
    assert all(any(order_id in line and "missing credit" in line and "12.50" in line for line in lines) for order_id in order_ids)
    assert "…" not in listed.stdout


def test_a_shorter_grace_period_judges_younger_orders_and_where_the_parquet_is_need_not_be_said(
    shop: ShopDatabases, tmp_path: Path, books: BrokenBooks
) -> None:
    shop.add_orders(["young"], at_ms=time.time_ns() // 1_000_000 - 30_000)
    done = reconciled(shop, books, tmp_path, "--grace-seconds", "10", "--hide-output")
    assert done.exit_code == 1
    assert "inconsistent: 1 orders" in done.stdout
    assert "Parquet" not in done.stdout


def test_an_output_that_cannot_be_written_is_one_line(shop: ShopDatabases, tmp_path: Path, books: BrokenBooks) -> None:
    (tmp_path / "out").write_text("")
    done = reconciled(shop, books, tmp_path)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("could not tell: ")
    assert "Traceback" not in done.stderr


def test_what_is_allowed_does_not_fail_and_what_is_named_does(shop: ShopDatabases, tmp_path: Path, books: BrokenBooks) -> None:
    shop.add_orders(["forgotten"], at_ms=AT_MS)
    shop.add_orders(["young"], at_ms=time.time_ns() // 1_000_000)
    allowed = ("--allow", "missing_credit", "--allow", "order_without_message")
    assert reconciled(shop, books, tmp_path).exit_code == 1
    assert reconciled(shop, books, tmp_path, *allowed).exit_code == 0
    done = reconciled(shop, books, tmp_path, *allowed, "--fail-on", "in_flight", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["is_consistent"], told["orders"], told["credits"]) == (False, 2, 0)
    assert {found["finding"]: (found["fails"], found["count"]) for found in told["findings"]} == {
        "in_flight": (True, 1),
        "missing_credit": (False, 1),
    }


def test_messages_are_compared_when_a_store_is_given(shop: ShopDatabases, tmp_path: Path, books: BrokenBooks) -> None:
    for order_id in ("fine", "doubled"):
        books.health(order_id)
    books.deliver("doubled")
    books.place("silent")
    books.credit("silent")
    books.announce("unknown")
    books.place("waiting")
    books.half("waiting", time.time_ns() // 1_000_000 - 300_000, decided=False)
    assert reconciled(shop, books, tmp_path, "--overdue-seconds", 10**12).exit_code == 1
    found = pyarrow.parquet.read_table(tmp_path / "out/findings").to_pylist()
    assert sorted((row["order_id"], row["finding"], row["cause"]) for row in found) == [
        ("doubled", "doubled_delivery", None),
        ("silent", "order_without_message", "no_message"),
        ("unknown", "message_without_order", "no_transaction"),
        ("waiting", "in_flight", "pending"),
    ]
