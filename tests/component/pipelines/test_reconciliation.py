"""Tests of the whole reconciliation, from tables and commit logs to findings, with the engine of the fixture `judge`.

Here the engine is SQLite, without a JVM. `tests/foreign/spark/session/test_judging_on_spark.py` runs all tests with Spark. In
`make test`, `test_embedded` compares Spark's findings with those of SQLite.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow.parquet
import pytest

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.log_gaps import gap_lines
from pipelines.judging.route import Route
from pipelines.judging.totals import SUMMED, Money, Tolerance
from pipelines.message_report import LoggedTransactions, MessageReport, TopicCount
from pipelines.reconciliation import ReconciliationOutcome, log_begins_ms
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.tables import read_inbox
from pipelines.sources.logs.message_logs import StoreLog
from rocketmq_commitlog.record_columns import RecordKind
from tests.component.pipelines.broken_books import AS_OF_MS, CUT_OFF, BrokenBooks
from tests.component.pipelines.conftest import Judge, ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter

PROCESS_INBOX: Final = """
import sqlite3, sys
sqlite3.connect(sys.argv[1]).executescript(
    "BEGIN; DELETE FROM rocketmq_inbox; INSERT INTO credits SELECT * FROM credits_to_come;"
    "INSERT INTO balances SELECT * FROM balances_to_come; COMMIT"
)
"""


def run(judge: Judge, shop: ShopDatabases, output: Path, *stores: Path) -> ReconciliationOutcome:
    return judge(shop.books(*stores), CUT_OFF, str(output))


def found(outcome: ReconciliationOutcome) -> dict[str, tuple[str, str | None]]:
    return {row["order_id"]: (row["finding"], row["cause"]) for row in outcome.rows if row["order_id"] is not None}


def test_books_broken_in_every_way_are_reported_as_they_were_broken(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    """The classes and causes are correct, and there are no other findings."""
    books = BrokenBooks(shop, LogWriter(tmp_path / "store", segment_size=1 << 17))
    books.add_each_twice()
    outcome = run(judge, shop, tmp_path / "out", books.log.store)
    assert found(outcome) == books.expected
    totals = {total.finding: total for total in outcome.totals}
    assert sum(totals[finding].count for finding in SUMMED) == books.healthy
    assert Finding.UNCLASSIFIED not in totals
    told = pyarrow.parquet.read_table(tmp_path / "out" / "findings").to_pylist()
    assert {(row["order_id"], row["finding"]) for row in told} == {
        (order_id, finding) for order_id, (finding, _) in books.expected.items()
    }


def test_what_is_not_consumed_yet_is_in_flight(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    books = BrokenBooks(shop, LogWriter(tmp_path / "store"))
    books.at_ms = AS_OF_MS - 200_000
    for order_id in ("consumed", "waits"):
        books.place(order_id)
        books.announce(order_id)
    books.log.consume(kept_back=1)
    outcome = run(judge, shop, tmp_path / "out", books.log.store)
    assert found(outcome) == {
        "consumed": (Finding.MISSING_CREDIT, Cause.CONSUMED),
        "waits": (Finding.IN_FLIGHT, Cause.NOT_CONSUMED),
    }


def test_what_is_credited_between_two_readings_is_in_the_inbox_or_in_the_ledger(
    judge: Judge, shop: ShopDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order matches even if the worker moves it from the inbox to the ledger after the judge has read the inbox."""
    books = BrokenBooks(shop, LogWriter(tmp_path / "store"), at_ms=AS_OF_MS - 200_000)
    for order_id in ("first", "second"):
        books.place(order_id)
        books.announce(order_id)
        books.store(order_id)
        books.credit(order_id, AS_OF_MS)
    shop.credits.executescript(
        "CREATE TABLE credits_to_come AS SELECT * FROM credits; CREATE TABLE balances_to_come AS SELECT * FROM balances;"
        "DELETE FROM credits; DELETE FROM balances"
    )
    books.log.consume()

    def read_and_processed(address: DatabaseAddress) -> Iterator[pyarrow.RecordBatch]:
        batches = list(read_inbox(address))
        assert sum(batch.num_rows for batch in batches) == 2
        # As the worker, from a process of its own: the judge reads with ADBC's SQLite, and a process may not use a database
        # with two SQLite libraries at a time (https://www.sqlite.org/howtocorrupt.html, 2.2.1).
        subprocess.run([sys.executable, "-c", PROCESS_INBOX, shop.credits_path], check=True, timeout=60)
        yield from batches

    for module in ("pipelines.embedded", "pipelines.reconciliation"):
        monkeypatch.setattr(f"{module}.read_inbox", read_and_processed)
    outcome = run(judge, shop, tmp_path / "out", books.log.store)
    assert {total.finding: total.count for total in outcome.totals if total.count} == {Finding.MATCHED: 2}


def test_a_gap_of_the_log_is_told_and_orders_in_it_are_not_judged(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    books = BrokenBooks(shop, LogWriter(tmp_path / "store", segment_size=6_000))
    for number in range(20):
        books.place(f"o-{number:02}")
        books.announce(f"o-{number:02}")
        if number % 5:
            books.credit(f"o-{number:02}")
    books.log.consume()
    (tmp_path / "store" / "commitlog" / f"{6_000:020}").unlink()
    outcome = run(judge, shop, tmp_path / "out", books.log.store)
    hidden = {row["order_id"] for row in outcome.rows if row["finding"] == Finding.NOT_JUDGED}
    judged = {row["order_id"]: row["finding"] for row in outcome.rows if row["order_id"] is not None} | dict.fromkeys(hidden)
    assert hidden
    assert {found for found in judged.values() if found} == {Finding.MISSING_CREDIT}
    assert gap_lines(outcome.rows) == [f"the log has a gap from 6,000 to 12,000: {len(hidden)} transactions cannot be judged"]
    assert not Tolerance().is_consistent(outcome.totals)
    assert {total.finding: total.count for total in outcome.totals}[Finding.LOG_GAP] == 1


def test_a_torn_end_of_the_log_hides_what_the_consume_queues_point_to(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    books = BrokenBooks(shop, LogWriter(tmp_path / "store"))
    books.health("a")
    end = books.log.end
    books.health("b")
    torn = books.log.end
    books.log.consume()
    books.log.damage(end, bytes(torn - end))
    outcome = run(judge, shop, tmp_path / "out", books.log.store)
    assert found(outcome) == {"b": (Finding.NOT_JUDGED, None)}
    assert gap_lines(outcome.rows) == [f"the log has a gap from {end:,} to {torn:,}: 1 transaction cannot be judged"]


def test_several_brokers_stores_are_one_history(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    """Messages of two brokers are kept apart, although their queue offsets and commit log offsets are equal."""
    first = BrokenBooks(shop, LogWriter(tmp_path / "first"))
    second = BrokenBooks(shop, LogWriter(tmp_path / "second"))
    first.health("a")
    second.place("b", AS_OF_MS - 200_000)
    second.half("b", AS_OF_MS - 200_000, decided=False)
    second.health("c")
    first.place("d")
    first.half("d")
    outcome = run(judge, shop, tmp_path / "out", first.log.store, second.log.store)
    assert found(outcome) == {"b": (Finding.IN_FLIGHT, Cause.PENDING), "d": (Finding.MISSING_CREDIT, Cause.ROLLED_BACK)}


def test_amounts_are_added_up_by_currency(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    shop.add_orders(["a", "b"], currency="EUR")
    shop.add_orders(["c"], currency="JPY", total_cents=99)
    shop.add_credits(["a", "b"])
    shop.add_credits(["c"], amount_cents=99)
    shop.add_orders(["d"], currency="JPY")
    totals = {total.finding: total for total in run(judge, shop, tmp_path / "out").totals}
    assert totals[Finding.MATCHED].money == (Money("EUR", 2500, 2500, 0, 2), Money("JPY", 99, 99, 0, 1))
    assert totals[Finding.MISSING_CREDIT].money == (Money("JPY", 1250, 0, 1250, 1),)


def test_balances_that_are_not_the_sum_of_the_ledger_are_found(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    for name in ("right", "wrong", "missing"):
        shop.add_orders([name], customer=name)
        shop.add_credits([name], customer=name)
    shop.add_orders(["too small"], total_cents=50, customer="without points")
    shop.add_credits(["too small"], amount_cents=50, customer="without points")
    shop.credits.execute("UPDATE balances SET points = 13 WHERE customer = 'wrong'")
    shop.credits.execute("DELETE FROM balances WHERE customer IN ('missing', 'without points')")
    shop.credits.execute("INSERT INTO balances VALUES ('invented', 5)")
    shop.credits.commit()
    outcome = run(judge, shop, tmp_path / "out")
    rows = [row for row in outcome.rows if row["finding"] != Finding.MATCHED]
    assert sorted((row["finding"], row["customer"], row["points"], row["balance"]) for row in rows) == [
        (Finding.BALANCE_MISMATCH, "invented", 0, 5),
        (Finding.BALANCE_MISMATCH, "wrong", 12, 13),
        (Finding.MISSING_BALANCE, "missing", 12, None),
        (Finding.MISSING_BALANCE, "without points", 0, None),
    ]


def test_empty_books_have_totals_of_nothing(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    outcome = run(judge, shop, tmp_path / "out")
    assert [total.count for total in outcome.totals] == [0] * len(outcome.totals)
    assert Finding.ORDER_WITHOUT_MESSAGE not in [total.finding for total in outcome.totals]
    assert pyarrow.parquet.read_table(tmp_path / "out" / "findings").num_rows == 0


def test_totals_name_a_few_orders(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    shop.add_orders(["a", "b", "c", "d", "e"])
    shop.add_credits(["e"])
    totals = {total.finding: total for total in run(judge, shop, tmp_path / "out").totals}
    assert totals[Finding.MISSING_CREDIT].sample_order_ids == ("a", "b", "c")
    assert totals[Finding.MATCHED].sample_order_ids == ()
    assert (totals[Finding.MATCHED].order_count, totals[Finding.MATCHED].credit_count) == (1, 1)


def test_an_empty_commit_log_has_no_message_for_any_order(judge: Judge, shop: ShopDatabases, tmp_path: Path) -> None:
    LogWriter(tmp_path / "store").save()
    shop.add_orders(["a"])
    shop.add_credits(["a"])
    outcome = run(judge, shop, tmp_path / "out", tmp_path / "store")
    assert found(outcome) == {"a": (Finding.ORDER_WITHOUT_MESSAGE, Cause.NO_MESSAGE)}


def test_a_log_that_lost_no_segment_is_complete_from_the_beginning_of_time(tmp_path: Path) -> None:
    LogWriter(tmp_path).half("a", at=77)
    assert log_begins_ms((StoreLog(tmp_path),), Route()) == 0


def test_logs_that_lost_segments_are_complete_from_the_latest_beginning_on(tmp_path: Path) -> None:
    LogWriter(tmp_path / "a", begins_at=1 << 30).half("a", at=77)
    LogWriter(tmp_path / "b", begins_at=1 << 30).half("a", at=99)
    assert log_begins_ms((StoreLog(tmp_path / "a"), StoreLog(tmp_path / "b")), Route()) == 99
    assert log_begins_ms((), Route()) is None


FINE = LoggedTransactions(transactions=3, delivered=2, doubled=0, pending=0, in_flight=1)


@pytest.mark.parametrize(
    ("kind", "counts", "consistent"),
    [
        (RecordKind.HALF, FINE, True),
        (RecordKind.DAMAGE, FINE, False),
        (RecordKind.HALF, LoggedTransactions(3, 2, 1, 0, 1), False),
        (RecordKind.HALF, LoggedTransactions(3, 2, 0, 1, 0), False),
    ],
)
def test_damage_doubles_and_late_decisions_are_inconsistent(
    kind: RecordKind, counts: LoggedTransactions, consistent: bool
) -> None:
    assert MessageReport([TopicCount("topic", kind, 1, 1)], counts).is_consistent == consistent
