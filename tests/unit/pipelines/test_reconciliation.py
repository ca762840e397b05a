from pathlib import Path

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import ABOUT_ORDERS, Finding
from pipelines.message_report import MessageReport, TopicCount, TransactionCounts
from pipelines.reconciliation import Books, log_begins_ms, reconcile
from pipelines.sources.commit_log_source import RecordKind
from pipelines.sources.database_url import parse_database_url
from tests.unit.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter

CUT_OFF = CutOff(as_of_ms=1_000_000, grace_seconds=100)


def books(shop: ShopDatabases, store: Path | None = None) -> Books:
    return Books(parse_database_url(shop.orders_url), parse_database_url(shop.credits_url), store)


def test_empty_books_have_totals_of_nothing(spark: SparkSession, shop: ShopDatabases, tmp_path: Path) -> None:
    totals = reconcile(spark, books(shop), CUT_OFF, str(tmp_path / "out"))
    assert [(total.finding, total.count) for total in totals] == [(finding, 0) for finding in ABOUT_ORDERS]
    assert pyarrow.parquet.read_table(tmp_path / "out" / "findings").num_rows == 0


def test_totals_count_add_up_and_name_a_few_orders(spark: SparkSession, shop: ShopDatabases, tmp_path: Path) -> None:
    shop.add_orders(["a", "b", "c", "d", "e"])
    shop.add_credits(["e"])
    totals = {total.finding: total for total in reconcile(spark, books(shop), CUT_OFF, str(tmp_path / "out"))}
    missing = totals[Finding.MISSING_CREDIT]
    assert (missing.count, missing.order_cents, missing.credit_cents) == (4, 5000, 0)
    assert missing.sample_order_ids == ("a", "b", "c")
    matched = totals[Finding.MATCHED]
    assert (matched.count, matched.order_cents, matched.credit_cents, matched.sample_order_ids) == (1, 1250, 1250, ())


def test_an_empty_commit_log_has_no_message_for_any_order(spark: SparkSession, shop: ShopDatabases, tmp_path: Path) -> None:
    LogWriter(tmp_path / "store").save()
    shop.add_orders(["a"])
    shop.add_credits(["a"])
    totals = reconcile(spark, books(shop, tmp_path / "store"), CUT_OFF, str(tmp_path / "out"))
    assert {total.finding: total.count for total in totals if total.count} == {
        Finding.MATCHED: 1,
        Finding.ORDER_WITHOUT_MESSAGE: 1,
    }


def test_a_log_that_lost_no_segment_is_complete_from_the_beginning_of_time(tmp_path: Path) -> None:
    LogWriter(tmp_path).half("a", at=77)
    assert log_begins_ms(tmp_path) == 0


def test_a_log_that_lost_segments_is_complete_from_its_first_record_on(tmp_path: Path) -> None:
    LogWriter(tmp_path, begins_at=1 << 30).half("a", at=77)
    assert log_begins_ms(tmp_path) == 77


FINE = TransactionCounts(transactions=3, delivered=2, doubled=0, pending=0, in_flight=1)


@pytest.mark.parametrize(
    ("kind", "counts", "consistent"),
    [
        (RecordKind.HALF, FINE, True),
        (RecordKind.DAMAGE, FINE, False),
        (RecordKind.HALF, TransactionCounts(3, 2, 1, 0, 1), False),
        (RecordKind.HALF, TransactionCounts(3, 2, 0, 1, 0), False),
    ],
)
def test_damage_doubles_and_late_decisions_are_inconsistent(
    kind: RecordKind, counts: TransactionCounts, consistent: bool
) -> None:
    assert MessageReport([TopicCount("topic", kind, 1, 1)], counts).is_consistent == consistent
