"""The SQL that determines each record's role for its order, and builds the events. Spark and SQLite run the same SQL.

A record belongs to the order in its body, because the record's checksum covers the body but not the properties. The message's key
is used only if the body has no order id.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pipelines.judging.log_gaps import name_of_stretch
from pipelines.judging.route import REQUIRED, REQUIRED_OF_CANCELLATION, Route
from pipelines.judging.table_events import EventSql
from pipelines.spark.sql_text import if_true
from rocketmq_broker.message import topics
from rocketmq_commitlog.record_columns import RecordKind

_ITEMS_SINCE_VERSION: Final = 2


def role_of(route: Route, quoted: Callable[[str], str]) -> str:
    """Returns the SQL of a record's role; NULL for a record that is not of the route. `quoted` returns a text as a literal."""
    orders, cancellations, schedule = quoted(route.topic), quoted(route.cancellation_topic), quoted(topics.SCHEDULE_TOPIC)
    retries, dead_letters = quoted(route.retry_topic), quoted(route.dead_letter_topic)
    return f"""CASE
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
            AND NOT (SUBSTR(topic, 1, 1) = '%' OR topic = {schedule}) THEN 'damage'
        END"""


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


def _differs(one: str, other: str) -> str:
    """Returns the SQL condition that two values differ. A NULL equals a NULL only."""
    return f"COALESCE({one} <> {other}, ({one} IS NULL) <> ({other} IS NULL))"


_IS_COMMITTED: Final = f"kind = '{RecordKind.COMMITTED}'"
_MISNAMED: Final = _differs("said.order_id", "key")
_WITHOUT_ITEMS: Final = f"said.items IS NULL AND said.version >= {_ITEMS_SINCE_VERSION}"
_STRETCH: Final = if_true("role IN ('damage', 'gap')", name_of_stretch())

RECORD_EVENTS: Final = EventSql(
    {
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
        **_min_and_max("item_marks", "message_items"),
        "misnamed": _count("delivered", _MISNAMED),
        "unreadable": _count("delivered", f"NOT ({_readable(REQUIRED)})"),
        "without_items": _count("delivered", _WITHOUT_ITEMS),
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
    },
    unnamed=if_true("source.order_id IS NULL", f"COALESCE(unique_key, {_STRETCH}, concat('at ', commit_log_offset))"),
    rare={
        "cancel_halves": _count("cancel_half"),
        "last_cancel_half_at_ms": _new("cancel_half", "stored_at_ms"),
        "last_decided_cancel_half_at_ms": _of("cancel_half", "stored_at_ms", "is_decided"),
        "cancel_deliveries": _count("cancellation"),
        "cancel_commits": _count("cancellation", _IS_COMMITTED),
        "cancel_misnamed": _count("cancellation", _MISNAMED),
        "cancel_unreadable": _count("cancellation", f"NOT ({_readable(REQUIRED_OF_CANCELLATION)})"),
        "cancel_delivered_at_ms": _new("cancellation", "stored_at_ms"),
        **_min_and_max("born_at_ms", "cancel_born_at_ms", "cancellation"),
        **_min_and_max("unique_key", "cancel_message_id", "cancellation"),
        **_min_and_max("said.total_cents", "cancel_cents", "cancellation"),
        **_min_and_max("said.currency", "cancel_currency", "cancellation"),
        **_min_and_max("said.customer", "cancel_customer", "cancellation"),
        **_min_and_max("said.cancelled_at_ms", "cancel_ended_at_ms", "cancellation"),
        "unconsumed_cancellations": _of("cancellation", "1", "NOT is_consumed"),
    },
    rare_where="role IN ('cancel_half', 'cancellation')",
)
"""An event for each record of the route except op messages.

The rows have the columns of records, and role, key, is_decided, is_consumed, is_carried, item_marks and `said`, the fields of the
body. The event of a record that was carried over from an earlier run has only the changes since then.
"""
