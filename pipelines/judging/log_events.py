"""Builds events from the records of commit logs, and determines each record's role for its order.

A record belongs to the order in its body, because the record's checksum covers the body but not the properties. The message's key
is used only if the body has no order id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.judging.events import event_rows
from pipelines.judging.log_gaps import name_of_stretch
from pipelines.judging.route import REQUIRED, REQUIRED_OF_CANCELLATION, Progress, Route
from pipelines.judging.table_events import mark_of_item
from pipelines.spark.sql_text import if_true, quoted
from rocketmq_broker.message import topics
from rocketmq_commitlog.record_columns import RecordKind

_BODY: Final = (
    "said struct<order_id: string, customer: string, total_cents: bigint, currency: string, created_at_ms: bigint, version: int, "
    "cancelled_at_ms: bigint, reason: string, items: array<struct<name: string, quantity: bigint>>>, is_whole boolean"
)
_AS_CONSUMERS_READ: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
_ITEMS_SINCE_VERSION: Final = 2


def log_events(records: DataFrame, route: Route, progress: Progress) -> DataFrame:
    """Returns an event for each record of the route. `records` are of one broker, with the columns message_logs.COLUMNS."""
    return events_of(classified_records(records, route, progress))


def classified_records(records: DataFrame, route: Route, progress: Progress, carried: DataFrame | None = None) -> DataFrame:
    """Returns the records of the route with their roles.

    `carried` are rows of an earlier call, selected by `unsettled`, to which new records may add information.
    """
    relevant = _relevant(records, route)
    if carried is not None:
        relevant = relevant.unionByName(carried, allowMissingColumns=True)
    return _with_order_ids(_with_decisions(relevant), route, progress)


def unsettled(records: DataFrame) -> DataFrame:
    """Selects the rows to which a later record or acknowledgement may add information, in the form for `carried`."""
    is_open_half = F.col("role").isin("half", "cancel_half") & ~F.col("is_decided")
    is_unconsumed = F.col("role").isin("delivered", "retried", "cancellation") & ~F.col("is_consumed")
    kept = records.where(is_open_half | is_unconsumed)
    return kept.select(*CARRIED[:-2], F.col("order_id").alias("carried_order_id"), F.lit(True).alias("is_carried"))


CARRIED: Final = (
    "role", "topic", "queue_id", "queue_offset", "commit_log_offset", "stored_at_ms", "unique_key", "carried_order_id",
    "is_carried",
)  # fmt: skip
"""The columns of a record that are kept for the next incremental run."""


def _relevant(records: DataFrame, route: Route) -> DataFrame:
    """Returns the route's records. Op messages and damage are repeated for each half message or key that they name."""
    orders, cancellations, schedule = quoted(route.topic), quoted(route.cancellation_topic), quoted(topics.SCHEDULE_TOPIC)
    retries, dead_letters = quoted(route.retry_topic), quoted(route.dead_letter_topic)
    role = f"""CASE
        WHEN kind = '{RecordKind.DAMAGE}' THEN 'damage'
        WHEN kind = '{RecordKind.GAP}' THEN 'gap'
        WHEN kind = '{RecordKind.OP}' THEN 'op'
        WHEN kind = '{RecordKind.HALF}' AND real_topic = {orders} THEN 'half'
        WHEN kind = '{RecordKind.HALF}' AND real_topic = {cancellations} THEN 'cancel_half'
        WHEN kind = '{RecordKind.DISCARDED}' AND real_topic = {orders} THEN 'discarded'
        WHEN topic = {orders} THEN 'delivered'
        WHEN topic = {cancellations} THEN 'cancellation'
        WHEN topic = {schedule} AND real_topic = {retries} THEN 'delayed'
        WHEN topic = {retries} THEN 'retried'
        WHEN topic = {dead_letters} THEN 'dead'
        WHEN kind = '{RecordKind.COMMITTED}' AND real_topic = {orders}
            AND NOT (startswith(topic, '%') OR topic = {schedule}) THEN 'damage'
        END"""
    named = "CASE role WHEN 'op' THEN split(decided_queue_offsets, ',') WHEN 'damage' THEN split(keys, ' ') END"
    with_role = records.selectExpr("*", f"{role} AS role", "FALSE AS is_carried", "CAST(NULL AS string) AS carried_order_id")
    return with_role.where("role IS NOT NULL").selectExpr("*", f"explode_outer({named}) AS named")


def _with_decisions(records: DataFrame) -> DataFrame:
    """Removes the op messages. Adds `is_decided`: True for a half message whose queue offset is in an op message.

    Half and op messages are grouped by the half message's queue offset. Each other record is its own group.
    """
    slot = """CASE
        WHEN role = 'op' THEN try_cast(trim(named) AS bigint)
        WHEN role IN ('half', 'cancel_half') THEN queue_offset
        ELSE -1 - commit_log_offset
        END"""
    kept = (
        "role", "kind", "topic", "queue_id", "queue_offset", "commit_log_offset", "stored_at_ms", "born_at_ms", "unique_key",
        "keys", "size", "named", "body", "carried_order_id", "is_carried",
    )  # fmt: skip
    record = f"struct({', '.join(kept)})"
    slots = records.selectExpr(
        f"{slot} AS slot",
        f"{_of('damage', 'named')} AS damaged_key",
        "role = 'op' AS is_op",
        f"{if_true(_IS_NO_OP, record)} AS record",
    )
    groups = slots.where("slot IS NOT NULL").groupBy("slot", "damaged_key")
    found = groups.agg(F.expr("max(is_op) AS is_decided"), F.expr("first(record, true) AS record"))
    return found.where("record IS NOT NULL").select("record.*", "is_decided")


_IS_NO_OP: Final = "role <> 'op'"


def _with_order_ids(records: DataFrame, route: Route, progress: Progress) -> DataFrame:
    # Spark reads one JSON value and ignores any text after it. Within another object no text may follow.
    wrapped = """concat('{"said":', CAST(body AS string), ',"is_whole":true}')"""
    reading = ", ".join(f"'{name}', '{value}'" for name, value in _AS_CONSUMERS_READ.items())
    key = "CASE WHEN role = 'damage' THEN named ELSE split_part(keys, ' ', 1) END"
    parsed = records.selectExpr(
        "*",
        f"from_json({wrapped}, '{_BODY}', map({reading})) AS parsed",
        f"nullif({key}, '') AS key",
        f"{_consumed(route, progress)} AS is_consumed",
    )
    said, order_id = if_true("parsed.is_whole", "parsed.said"), "COALESCE(carried_order_id, parsed.said.order_id, key)"
    return parsed.selectExpr("*", f"{said} AS said", f"{order_id} AS order_id")


def events_of(records: DataFrame) -> DataFrame:
    """Returns one event for each row. The event of a record carried over from an earlier run has only the changes since then."""
    stretch = if_true("role IN ('damage', 'gap')", name_of_stretch())
    unnamed = if_true("order_id IS NULL", f"COALESCE(unique_key, {stretch}, concat('at ', commit_log_offset))")
    without_items = f"said.items IS NULL AND said.version >= {_ITEMS_SINCE_VERSION}"
    said = {
        "halves": _count("half"),
        "half_at_ms": _new("half", "stored_at_ms"),
        "last_half_at_ms": _new("half", "stored_at_ms"),
        "half_transaction_id": _new("half", "unique_key"),
        "last_decided_half_at_ms": _of("half", "stored_at_ms", "is_decided"),
        "discards": _count("discarded"),
        "discarded_at_ms": _new("discarded", "stored_at_ms"),
        "deliveries": _count("delivered"),
        "commits": _count("delivered", _IS_COMMITTED),
        **_min_and_max("stored_at_ms", "delivered_at_ms"),
        **_min_and_max("born_at_ms", "born_at_ms"),
        **_min_and_max("unique_key", "message_transaction_id"),
        **_min_and_max("said.total_cents", "message_cents"),
        **_min_and_max("said.currency", "message_currency"),
        **_min_and_max("said.customer", "message_customer"),
        **_min_and_max("said.created_at_ms", "message_placed_at_ms"),
        **_min_and_max(_MARKS_OF_ITEMS, "message_items"),
        "misnamed": _count("delivered", "NOT (said.order_id <=> key)"),
        "unreadable": _count("delivered", f"NOT ({_readable(REQUIRED)})"),
        "without_items": _count("delivered", without_items),
        "consumed": _of("delivered", "1", "is_consumed"),
        "unconsumed": _of("delivered", "1", "NOT is_consumed"),
        "delayed_at_ms": _new("delayed", "stored_at_ms"),
        "retries": _count("retried"),
        "retried_at_ms": _new("retried", "stored_at_ms"),
        "unconsumed_retries": _of("retried", "1", "NOT is_consumed"),
        "dead_letters": _count("dead"),
        "dead_at_ms": _new("dead", "stored_at_ms"),
        "damaged": _count("damage"),
        "gaps": _count("gap"),
        "latest_at_ms": if_true("NOT is_carried", "stored_at_ms"),
    }
    of_cancellation = {
        "cancel_halves": _count("cancel_half"),
        "last_cancel_half_at_ms": _new("cancel_half", "stored_at_ms"),
        "last_decided_cancel_half_at_ms": _of("cancel_half", "stored_at_ms", "is_decided"),
        "cancel_deliveries": _count("cancellation"),
        "cancel_commits": _count("cancellation", _IS_COMMITTED),
        "cancel_misnamed": _count("cancellation", "NOT (said.order_id <=> key)"),
        "cancel_unreadable": _count("cancellation", f"NOT ({_readable(REQUIRED_OF_CANCELLATION)})"),
        "cancel_delivered_at_ms": _new("cancellation", "stored_at_ms"),
        **_min_and_max("born_at_ms", "cancel_born_at_ms", "cancellation"),
        **_min_and_max("unique_key", "cancel_message_id", "cancellation"),
        **_min_and_max("said.total_cents", "cancel_cents", "cancellation"),
        **_min_and_max("said.currency", "cancel_currency", "cancellation"),
        **_min_and_max("said.customer", "cancel_customer", "cancellation"),
        **_min_and_max("said.cancelled_at_ms", "cancel_ended_at_ms", "cancellation"),
        "unconsumed_cancellations": _of("cancellation", "1", "NOT is_consumed"),
    }
    return event_rows(records, said, unnamed=unnamed, rare=("role IN ('cancel_half', 'cancellation')", of_cancellation))


def _of(role: str, value: str, condition: str = "TRUE") -> str:
    """Returns SQL that is `value` for records with this role that meet the condition, otherwise NULL."""
    return if_true(f"role = '{role}' AND {condition}", value)


def _new(role: str, value: str) -> str:
    """Returns SQL that is `value` for records with this role that were not carried over from an earlier run, otherwise NULL."""
    return _of(role, value, "NOT is_carried")


def _count(role: str, condition: str = "TRUE") -> str:
    """Returns SQL that is 1 for new records with this role that meet the condition, otherwise NULL.

    Records that were carried over from an earlier run are not new.
    """
    return _of(role, "1", f"NOT is_carried AND {condition}")


def _min_and_max(value: str, name: str, role: str = "delivered") -> dict[str, str]:
    """Returns columns for the minimum and the maximum of a value, so that a difference among several messages is found."""
    return {name: _new(role, value), f"last_{name}": _new(role, value)}


def _readable(required: Sequence[str]) -> str:
    """Returns the SQL condition that consumers can read the body, a JSON object with all fields in the right types."""
    return " AND ".join((*(f"said.{name} IS NOT NULL" for name in required), "COALESCE(said.version, 1) >= 1"))


_IS_COMMITTED: Final = f"kind = '{RecordKind.COMMITTED}'"

_NOTHING: Final = "CAST(0 AS decimal(38,0))"
_WITH_ONE_MORE: Final = f"CAST(total + {mark_of_item('item.name', 'item.quantity')} AS decimal(38,0))"
_MARKS_OF_ITEMS: Final = f"aggregate(said.items, {_NOTHING}, (total, item) -> {_WITH_ONE_MORE})"
"""The sum of the marks of all items; NULL for a body without items, as in version 1."""


def _consumed(route: Route, progress: Progress) -> str:
    """Returns the SQL condition that the consumer group has acknowledged the record; NULL if it is unknown."""
    cases = []
    for topic in route.consumed_topics:
        offsets = progress.get(topic)
        if offsets is not None:
            pairs = ", ".join(f"{queue_id:d}, {offset:d}L" for queue_id, offset in offsets.items())
            next_offset = f"COALESCE(try_element_at(map({pairs}), queue_id), 0L)" if offsets else "0L"
            cases.append(f"WHEN {quoted(topic)} THEN queue_offset < {next_offset}")
    return f"CASE topic {' '.join(cases)} END" if cases else "CAST(NULL AS boolean)"
