"""Each class of finding between orders and messages."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import Finding
from pipelines.message_matching import match_messages

CUT_OFF = CutOff(as_of_ms=1_000_000, grace_seconds=100)
OLD = CUT_OFF.judged_until_ms
YOUNG = OLD + 1

Rows = Sequence[tuple[object, ...]]


def order(order_id: str = "a", *, at: int = OLD, is_rolled_back: bool = False) -> tuple[object, ...]:
    return order_id, "ada", 1250, at, is_rolled_back


def message(order_id: str | None = "a", *, at: int = OLD, delivered: int = 1, is_pending: bool = False) -> tuple[object, ...]:
    return f"U-{order_id}", order_id, at, delivered, is_pending


def findings(spark: SparkSession, orders: Rows, messages: Rows, log_begins_ms: int = 0) -> list[tuple[str, str | None]]:
    order_frame = spark.createDataFrame(
        list(orders), "order_id string, customer string, total_cents bigint, ordered_at_ms bigint, is_rolled_back boolean"
    )
    message_frame = spark.createDataFrame(
        list(messages), "unique_key string, order_id string, stored_at_ms bigint, delivered bigint, is_pending boolean"
    )
    found = match_messages(order_frame, message_frame, CUT_OFF, log_begins_ms).collect()
    return sorted((row.finding, row.order_id) for row in found)


def test_an_order_with_its_message_is_fine(spark: SparkSession) -> None:
    assert findings(spark, [order()], [message()]) == []


def test_an_old_order_without_a_message_is_found(spark: SparkSession) -> None:
    assert findings(spark, [order()], []) == [(Finding.ORDER_WITHOUT_MESSAGE, "a")]


def test_an_order_whose_transaction_was_closed_undelivered_is_found(spark: SparkSession) -> None:
    assert findings(spark, [order()], [message(delivered=0)]) == [(Finding.ORDER_WITHOUT_MESSAGE, "a")]


def test_a_young_or_rolled_back_order_needs_no_message(spark: SparkSession) -> None:
    assert findings(spark, [order("a", at=YOUNG), order("b", is_rolled_back=True)], []) == []


def test_an_order_older_than_the_log_needs_no_message(spark: SparkSession) -> None:
    found = findings(spark, [order("a", at=OLD - 9), order("b", at=OLD - 5)], [], log_begins_ms=OLD - 5)
    assert found == [(Finding.ORDER_WITHOUT_MESSAGE, "b")]


def test_a_message_without_an_order_is_found_once_it_is_old(spark: SparkSession) -> None:
    assert findings(spark, [], [message("a"), message("b", at=YOUNG)]) == [(Finding.MESSAGE_WITHOUT_ORDER, "a")]


def test_a_message_of_a_rolled_back_order_is_found(spark: SparkSession) -> None:
    assert findings(spark, [order(is_rolled_back=True)], [message()]) == [(Finding.MESSAGE_WITHOUT_ORDER, "a")]


def test_a_message_without_a_key_belongs_to_no_order(spark: SparkSession) -> None:
    assert findings(spark, [], [message(None)]) == [(Finding.MESSAGE_WITHOUT_ORDER, None)]


def test_a_pending_half_message_is_found_once_it_is_old(spark: SparkSession) -> None:
    pending = [message("a", delivered=0, is_pending=True), message("b", delivered=0, is_pending=True, at=YOUNG)]
    assert findings(spark, [order("a"), order("b")], pending) == [(Finding.HALF_MESSAGE_PENDING, "a")]


def test_a_doubled_delivery_is_found_at_any_age(spark: SparkSession) -> None:
    assert findings(spark, [order(at=YOUNG)], [message(delivered=2, at=YOUNG)]) == [(Finding.DOUBLED_DELIVERY, "a")]
