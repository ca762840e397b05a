"""Builds events from the records of commit logs with Spark. The SQL of roles and events is in `record_events`."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.judging.events import event_rows
from pipelines.judging.record_events import RECORD_EVENTS, role_of
from pipelines.judging.route import Progress, Route
from pipelines.judging.table_events import mark_of_item
from pipelines.spark.sql_text import if_true, quoted

_BODY: Final = (
    "said struct<order_id: string, customer: string, total_cents: bigint, currency: string, created_at_ms: bigint, version: int, "
    "cancelled_at_ms: bigint, reason: string, items: array<struct<name: string, quantity: bigint>>>, is_whole boolean"
)
_AS_CONSUMERS_READ: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


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
    named = "CASE role WHEN 'op' THEN split(decided_queue_offsets, ',') WHEN 'damage' THEN split(keys, ' ') END"
    with_role = records.selectExpr(
        "*", f"{role_of(route, quoted)} AS role", "FALSE AS is_carried", "CAST(NULL AS string) AS carried_order_id"
    )
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
        f"{if_true(_IS_DAMAGE, 'named')} AS damaged_key",
        "role = 'op' AS is_op",
        f"{if_true(_IS_NO_OP, record)} AS record",
    )
    groups = slots.where("slot IS NOT NULL").groupBy("slot", "damaged_key")
    found = groups.agg(F.expr("max(is_op) AS is_decided"), F.expr("first(record, true) AS record"))
    return found.where("record IS NOT NULL").select("record.*", "is_decided")


_IS_NO_OP: Final = "role <> 'op'"
_IS_DAMAGE: Final = "role = 'damage'"


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
    return event_rows(records.selectExpr("*", f"{_MARKS_OF_ITEMS} AS item_marks"), RECORD_EVENTS)


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
