from pathlib import Path

from pyspark.sql import SparkSession

from pipelines.message_report import count_records
from pipelines.sources.logs.message_logs import read_records
from pipelines.sources.reading import Reading
from pipelines.transactions import decisions_of, transactions_of
from tests.unit.pipelines.log_writer import LogWriter


def outcomes(spark: SparkSession, log: LogWriter) -> dict[str, tuple[str | None, int, bool]]:
    rows = transactions_of(read_records(Reading(spark, True), log.store), "orders").collect()
    return {row.unique_key: (row.order_id, row.delivered, row.is_pending) for row in rows}


def test_a_half_message_without_a_decision_is_pending(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    assert outcomes(spark, log) == {"U-a": ("a", 0, True)}


def test_a_committed_transaction_is_delivered(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.deliver("a", half=log.half("a"))
    log.decide(0)
    assert outcomes(spark, log) == {"U-a": ("a", 1, False)}


def test_a_crash_between_message_and_op_message_leaves_nothing_pending(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.deliver("a", half=log.half("a"))
    assert outcomes(spark, log) == {"U-a": ("a", 1, False)}


def test_a_rolled_back_transaction_is_neither_pending_nor_delivered(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    log.decide(0)
    assert outcomes(spark, log) == {"U-a": ("a", 0, False)}


def test_a_discarded_transaction_is_not_pending(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    log.discard("a")
    assert outcomes(spark, log) == {"U-a": ("a", 0, False)}


def test_a_half_message_moved_forward_is_judged_by_its_latest_copy(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.half("a")
    log.half("a")
    log.decide(0)
    log.half("b")
    log.half("b")
    log.decide(3)
    assert outcomes(spark, log) == {"U-a": ("a", 0, True), "U-b": ("b", 0, False)}


def test_two_deliveries_of_one_transaction_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.deliver("a", half=log.half("a"))
    log.deliver("a", half=log.half("a"))
    assert outcomes(spark, log)["U-a"] == ("a", 2, False)


def test_without_a_unique_key_a_delivery_is_known_by_its_half_message(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.deliver("a", half=500, unique_key="")
    log.deliver("a", half=500, unique_key="")
    log.deliver("b", half=700, unique_key="")
    assert outcomes(spark, log) == {"half@500": ("a", 2, False), "half@700": ("b", 1, False)}


def test_other_topics_and_retries_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.deliver("a", half=log.half("a"))
    log.deliver("a", topic="%RETRY%credit_service")
    log.half("x", topic="payments")
    assert outcomes(spark, log) == {"U-a": ("a", 1, False)}


def test_one_op_message_may_settle_several_half_messages(spark: SparkSession, tmp_path: Path) -> None:
    """An op message of RocketMQ 5, which contains several offsets, decides all of these half messages."""
    log = LogWriter(tmp_path)
    log.decide(3, 4)
    log.append("RMQ_SYS_TRANS_OP_HALF_TOPIC", None, "", 1, body=b"7,,nonsense")
    decided = decisions_of(read_records(Reading(spark, True), log.store)).collect()
    assert sorted(row.queue_offset for row in decided) == [3, 4, 7]


def test_records_are_counted_by_topic_and_kind_and_damage_is_one(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    damaged = log.half("a")
    log.deliver("b")
    log.append("payments", "p", None, 1)
    log.damage(damaged + 4, b"\xee\xee\xee\xee")
    counted = count_records(read_records(Reading(spark, True), log.store)).collect()
    assert [(row.topic, row.kind, row.records) for row in counted] == [
        (None, "damage", 1),
        ("orders", "committed", 1),
        ("payments", "plain", 1),
    ]
