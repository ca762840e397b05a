"""Events of commit logs: the meaning of each record for its order.

A record belongs to the order named in its body: the record's checksum covers the body, but neither keys nor other properties. The
message's key counts only if the body names no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.judging.log_gaps import name_of_stretch
from pipelines.judging.table_events import mark_of_item
from rocketmq_broker.message import topics
from rocketmq_commitlog.record_columns import RecordKind

_BODY: Final = (
    "said struct<order_id: string, customer: string, total_cents: bigint, currency: string, created_at_ms: bigint, version: int, "
    "items: array<struct<name: string, quantity: bigint>>>, is_whole boolean"
)
_AS_CONSUMERS_READ: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
_REQUIRED: Final = ("order_id", "customer", "total_cents", "currency", "created_at_ms")
_ITEMS_SINCE_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Route:
    """The topic of the orders' messages, and its consumer group."""

    topic: str = "orders"
    consumer_group: str = "credit_service"
    cancellation_topic: str = "order_cancellations"
    """The topic of cancellations of told orders."""

    @property
    def retry_topic(self) -> str:
        """The topic of the group's redeliveries."""
        return topics.retry_topic(self.consumer_group)

    @property
    def consumed_topics(self) -> tuple[str, ...]:
        """The topics in which the group's progress counts."""
        return self.topic, self.retry_topic, self.cancellation_topic

    @property
    def dead_letter_topic(self) -> str:
        """The topic of the group's dead letters."""
        return topics.dead_letter_topic(self.consumer_group)


Progress = Mapping[str, Mapping[int, int] | None]
"""By topic, the group's next offset in each queue; None if unknown."""


def log_events(records: DataFrame, route: Route, progress: Progress) -> DataFrame:
    """Returns the events of one broker's records (the columns of message_logs.COLUMNS), one for each record of the route."""
    return events_of(told_records(records, route, progress))


def told_records(records: DataFrame, route: Route, progress: Progress, carried: DataFrame | None = None) -> DataFrame:
    """Returns the records of the route, with their meaning for their order.

    `carried` are rows of an earlier call, chosen by `unsettled`: their later changes are included.
    """
    relevant = _relevant(records, route)
    if carried is not None:
        relevant = relevant.unionByName(carried, allowMissingColumns=True)
    return _told(_with_decisions(relevant), route, progress)


def unsettled(told: DataFrame) -> DataFrame:
    """Selects the rows about which a later record or acknowledgement may say more, ready to be carried."""
    is_open_half = F.col("role").isin("half", "cancel_half") & ~F.col("is_decided")
    is_unconsumed = F.col("role").isin("delivered", "retried", "cancellation") & ~F.col("is_consumed")
    kept = told.where(is_open_half | is_unconsumed)
    return kept.select(*CARRIED[:-2], F.col("order_id").alias("carried_order_id"), F.lit(True).alias("is_carried"))


CARRIED: Final = (
    "role", "topic", "queue_id", "queue_offset", "commit_log_offset", "stored_at_ms", "unique_key", "carried_order_id",
    "is_carried",
)  # fmt: skip
"""The columns of a record that are kept for the next increment."""


def _relevant(records: DataFrame, route: Route) -> DataFrame:
    """Returns the route's records with the needed columns; op messages and damage once for each thing that they name."""
    kind, topic, real_topic = F.col("kind"), F.col("topic"), F.col("real_topic")
    is_copy = topic.startswith("%") | (topic == topics.SCHEDULE_TOPIC)
    role = (
        F.when(kind == RecordKind.DAMAGE, F.lit("damage"))
        .when(kind == RecordKind.GAP, F.lit("gap"))
        .when(kind == RecordKind.OP, F.lit("op"))
        .when((kind == RecordKind.HALF) & (real_topic == route.topic), F.lit("half"))
        .when((kind == RecordKind.HALF) & (real_topic == route.cancellation_topic), F.lit("cancel_half"))
        .when((kind == RecordKind.DISCARDED) & (real_topic == route.topic), F.lit("discarded"))
        .when(topic == route.topic, F.lit("delivered"))
        .when(topic == route.cancellation_topic, F.lit("cancellation"))
        .when((topic == topics.SCHEDULE_TOPIC) & (real_topic == route.retry_topic), F.lit("delayed"))
        .when(topic == route.retry_topic, F.lit("retried"))
        .when(topic == route.dead_letter_topic, F.lit("dead"))
        .when((kind == RecordKind.COMMITTED) & (real_topic == route.topic) & ~is_copy, F.lit("damage"))
    )
    named = F.when(role == "op", F.split("decided_queue_offsets", ",")).when(role == "damage", F.split("keys", " "))
    return (
        records.select("*", role.alias("role"), named.alias("all_named"), F.lit(False).alias("is_carried"))
        .withColumn("carried_order_id", F.lit(None).cast("string"))
        .where(F.col("role").isNotNull())
        .select("*", F.explode_outer("all_named").alias("named"))
    )


def _with_decisions(records: DataFrame) -> DataFrame:
    """Removes the op messages; `is_decided` says of a half message whether an op message names its queue offset.

    Half and op messages meet in one group, by the half message's queue offset. Each other record is its own group.
    """
    decided_offset = F.expr("try_cast(trim(named) AS bigint)")
    slot = (
        F.when(F.col("role") == "op", decided_offset)
        .when(F.col("role").isin("half", "cancel_half"), F.col("queue_offset"))
        .otherwise(F.lit(-1) - F.col("commit_log_offset"))
    )
    kept = (
        "role", "topic", "queue_id", "queue_offset", "commit_log_offset", "stored_at_ms", "born_at_ms", "unique_key", "keys",
        "size", "named", "body", "carried_order_id", "is_carried",
    )  # fmt: skip
    return (
        records.select(
            slot.alias("slot"),
            F.when(F.col("role") == "damage", F.col("named")).alias("damaged_key"),
            (F.col("role") == "op").alias("is_op"),
            F.when(F.col("role") != "op", F.struct(*kept)).alias("record"),
        )
        .where(F.col("slot").isNotNull())
        .groupBy("slot", "damaged_key")
        .agg(F.max("is_op").alias("is_decided"), F.first("record", ignorenulls=True).alias("record"))
        .where(F.col("record").isNotNull())
        .select("record.*", "is_decided")
    )


def _told(records: DataFrame, route: Route, progress: Progress) -> DataFrame:
    # Spark reads one JSON value and ignores the text behind it. Within another object no text may follow.
    wrapped = F.concat(F.lit('{"said":'), F.col("body").cast("string"), F.lit(',"is_whole":true}'))
    parsed = F.from_json(wrapped, _BODY, _AS_CONSUMERS_READ)
    key = F.when(F.col("role") == "damage", F.col("named")).otherwise(F.split_part("keys", F.lit(" "), F.lit(1)))
    told = records.select("*", parsed.alias("parsed"), F.when(key != "", key).alias("key"), _consumed(route, progress))
    return told.select(
        "*",
        F.when(F.col("parsed.is_whole"), F.col("parsed.said")).alias("said"),
        F.coalesce("carried_order_id", "parsed.said.order_id", "key").alias("order_id"),
    )


def events_of(told: DataFrame) -> DataFrame:
    """Returns one event for each row; a carried record only has its news."""
    stretch = F.when(F.col("role").isin("damage", "gap"), name_of_stretch())
    return told.select(
        "order_id",
        F.when(F.col("order_id").isNull(), F.coalesce("unique_key", stretch, F.concat(F.lit("at "), "commit_log_offset"))).alias(
            "unnamed"
        ),
        _count("half", "halves"),
        _at("half", "stored_at_ms", "half_at_ms"),
        _at("half", "stored_at_ms", "last_half_at_ms"),
        _at("half", "unique_key", "half_transaction_id"),
        F.when((F.col("role") == "half") & F.col("is_decided"), F.col("stored_at_ms")).alias("last_decided_half_at_ms"),
        _count("discarded", "discards"),
        _at("discarded", "stored_at_ms", "discarded_at_ms"),
        _count("delivered", "deliveries"),
        _at("delivered", "stored_at_ms", "delivered_at_ms"),
        _at("delivered", "stored_at_ms", "last_delivered_at_ms"),
        _at("delivered", "born_at_ms", "born_at_ms"),
        _at("delivered", "born_at_ms", "last_born_at_ms"),
        *_least_and_greatest("unique_key", "message_transaction_id"),
        *_least_and_greatest("said.total_cents", "message_cents"),
        *_least_and_greatest("said.currency", "message_currency"),
        *_least_and_greatest("said.customer", "message_customer"),
        *_least_and_greatest("said.created_at_ms", "message_placed_at_ms"),
        *_least_and_greatest(_marks_of_items(), "message_items"),
        _count("delivered", "misnamed", ~F.col("said.order_id").eqNullSafe(F.col("key"))),
        _count("delivered", "unreadable", ~_is_readable()),
        _count("delivered", "without_items", F.col("said.items").isNull() & (F.col("said.version") >= _ITEMS_SINCE_VERSION)),
        F.when((F.col("role") == "delivered") & F.col("is_consumed"), 1).alias("consumed"),
        F.when((F.col("role") == "delivered") & ~F.col("is_consumed"), 1).alias("unconsumed"),
        _at("delayed", "stored_at_ms", "delayed_at_ms"),
        _count("retried", "retries"),
        _at("retried", "stored_at_ms", "retried_at_ms"),
        F.when((F.col("role") == "retried") & ~F.col("is_consumed"), 1).alias("unconsumed_retries"),
        _count("dead", "dead_letters"),
        _at("dead", "stored_at_ms", "dead_at_ms"),
        _count("damage", "damaged"),
        _count("gap", "gaps"),
        _count("cancel_half", "cancel_halves"),
        _at("cancel_half", "stored_at_ms", "last_cancel_half_at_ms"),
        F.when((F.col("role") == "cancel_half") & F.col("is_decided"), F.col("stored_at_ms")).alias(
            "last_decided_cancel_half_at_ms"
        ),
        _count("cancellation", "cancel_deliveries"),
        _at("cancellation", "stored_at_ms", "cancel_delivered_at_ms"),
        F.when(~F.col("is_carried"), F.col("stored_at_ms")).alias("latest_at_ms"),
        F.when((F.col("role") == "cancellation") & ~F.col("is_consumed"), 1).alias("unconsumed_cancellations"),
    )


def _count(role: str, name: str, condition: Column | None = None) -> Column:
    is_counted = (F.col("role") == role) & ~F.col("is_carried")
    return F.when(is_counted if condition is None else is_counted & condition, 1).alias(name)


def _at(role: str, column: str | Column, name: str) -> Column:
    value = F.col(column) if isinstance(column, str) else column
    return F.when((F.col("role") == role) & ~F.col("is_carried"), value).alias(name)


def _least_and_greatest(column: str | Column, name: str) -> tuple[Column, Column]:
    """Returns a delivered message's value twice: so among several messages a different one cannot hide behind the others."""
    return _at("delivered", column, name), _at("delivered", column, f"last_{name}")


def _is_readable() -> Column:
    """Returns whether a consumer understands the body: one JSON object with all fields of each version, in their types."""
    return reduce(and_, (F.col(f"said.{name}").isNotNull() for name in _REQUIRED))


def _marks_of_items() -> Column:
    """Returns the sum of the marks of all lines; NULL for a body without lines, as in version 1."""
    nothing = F.lit(0).cast("decimal(38,0)")
    return F.aggregate(
        "said.items",
        nothing,
        lambda sum, item: (sum + mark_of_item(item["name"], item["quantity"])).cast("decimal(38,0)"),
    )


def _consumed(route: Route, progress: Progress) -> Column:
    """Returns whether the consumer group has acknowledged the record; NULL if it is unknown."""
    consumed = F.lit(None).cast("boolean")
    for topic in route.consumed_topics:
        offsets = progress.get(topic)
        if offsets is None:
            continue
        next_offset = F.lit(0).cast("bigint")
        if offsets:
            pairs = [F.lit(value) for queue_id, offset in offsets.items() for value in (queue_id, offset)]
            next_offset = F.coalesce(
                F.try_element_at(F.create_map(*pairs).cast("map<int,bigint>"), F.col("queue_id")), next_offset
            )
        consumed = F.when(F.col("topic") == topic, F.col("queue_offset") < next_offset).otherwise(consumed)
    return consumed.alias("is_consumed")
