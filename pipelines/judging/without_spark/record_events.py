"""Builds events from records in memory. `pipelines.judging.log_events` does the same with DataFrames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from pipelines.judging.route import REQUIRED, REQUIRED_OF_CANCELLATION, Progress, Route
from pipelines.judging.without_spark.sqlite_judge import Event
from pipelines.judging.without_spark.table_events import mark_of_item
from rocketmq_broker.message import topics
from rocketmq_commitlog.commit_log import Damage, LogRecord
from rocketmq_commitlog.record_columns import COLUMNS, RecordColumns, RecordKind

_WANTED: Final = (
    "commit_log_offset", "size", "kind", "topic", "queue_id", "queue_offset", "stored_at_ms", "born_at_ms", "unique_key", "keys",
    "real_topic", "decided_queue_offsets", "body",
)  # fmt: skip
_TEXTS: Final = ("order_id", "customer", "currency", "reason")
_NUMBERS: Final = ("total_cents", "created_at_ms", "cancelled_at_ms", "version")
_ITEMS_SINCE_VERSION: Final = 2
_BITS_OF: Final = {"version": 32}
_SAID_AS: Final = {
    "total_cents": "message_cents", "currency": "message_currency", "customer": "message_customer",
    "created_at_ms": "message_placed_at_ms",
}  # fmt: skip
_SAID_OF_CANCELLATION_AS: Final = {
    "total_cents": "cancel_cents", "currency": "cancel_currency", "customer": "cancel_customer",
    "cancelled_at_ms": "cancel_ended_at_ms",
}  # fmt: skip


Row = dict[str, Any]
"""A record with the columns of `rocketmq_commitlog`, and its `role` for the route."""


def record_events(found: Iterable[LogRecord | Damage], route: Route, progress: Progress) -> Iterator[Event]:
    """Yields an event for each record of the route, except op messages, and for each damaged part.

    Op messages only determine whether a half message is decided.
    """
    return events_of_rows(_columns(list(found)), route, progress)


def events_of_rows(records: Iterable[Row], route: Route, progress: Progress) -> Iterator[Event]:
    """Yields the events of records that were converted to rows."""
    rows = [{**row, "role": role} for row in records if (role := _role(row, route)) is not None]
    decided = {offset for row in rows if row["role"] == "op" for offset in _numbers(row["decided_queue_offsets"])}
    for row in rows:
        names = (row["keys"] or "").split(" ")
        if row["role"] != "op":
            for name in names if row["role"] == "damage" else names[:1]:
                yield _event(row, name or None, row["queue_offset"] in decided, _is_consumed(row, progress))


def _columns(found: list[LogRecord | Damage]) -> list[Row]:
    """Converts records to rows."""
    if not found:
        return []
    batch = RecordColumns.of(found)
    columns = [COLUMNS[name](batch) for name in _WANTED]
    return [dict(zip(_WANTED, values, strict=True)) for values in zip(*columns, strict=True)]


def _role(row: Row, route: Route) -> str | None:
    kind, topic, real_topic = row["kind"], row["topic"], row["real_topic"]
    if kind in (RecordKind.DAMAGE, RecordKind.GAP, RecordKind.OP):
        return str(kind)
    if kind == RecordKind.HALF:
        return {route.topic: "half", route.cancellation_topic: "cancel_half"}.get(real_topic)
    if kind == RecordKind.DISCARDED and real_topic == route.topic:
        return "discarded"
    if topic == topics.SCHEDULE_TOPIC and real_topic == route.retry_topic:
        return "delayed"
    by_topic = {
        route.topic: "delivered",
        route.cancellation_topic: "cancellation",
        route.retry_topic: "retried",
        route.dead_letter_topic: "dead",
    }
    if topic in by_topic:
        return by_topic[topic]
    is_copy = topic.startswith("%") or topic == topics.SCHEDULE_TOPIC
    return "damage" if kind == RecordKind.COMMITTED and real_topic == route.topic and not is_copy else None


def _numbers(texts: str | None) -> Iterator[int]:
    for text in (texts or "").split(","):
        with suppress(ValueError):
            yield int(text)


def _is_consumed(row: Row, progress: Progress) -> bool | None:
    """Returns True if the consumer group has acknowledged the record; None if it is unknown."""
    offsets = progress.get(row["topic"])
    return None if offsets is None else row["queue_offset"] < offsets.get(row["queue_id"], 0)


def _event(row: Row, key: str | None, is_decided: bool, is_consumed: bool | None) -> Row:
    said = _said(row["body"])
    order_id = key if said.get("order_id") is None else said["order_id"]
    at_ms = row["stored_at_ms"]
    event: Row = {"order_id": order_id, "unnamed": _unnamed(row) if order_id is None else None, "latest_at_ms": at_ms}
    match row["role"]:
        case "half":
            decided_at_ms = at_ms if is_decided else None
            event |= {"halves": 1, "half_at_ms": at_ms, "last_half_at_ms": at_ms, "last_decided_half_at_ms": decided_at_ms}
            event["half_transaction_id"] = row["unique_key"]
        case "cancel_half":
            event |= {"cancel_halves": 1, "last_cancel_half_at_ms": at_ms}
            event["last_decided_cancel_half_at_ms"] = at_ms if is_decided else None
        case "discarded":
            event |= {"discards": 1, "discarded_at_ms": at_ms}
        case "delivered":
            event |= _delivery(row, said, key)
            event |= {"consumed": int(is_consumed is True), "unconsumed": int(is_consumed is False)}
        case "delayed":
            event |= {"delayed_at_ms": at_ms}
        case "retried":
            event |= {"retries": 1, "retried_at_ms": at_ms, "unconsumed_retries": int(is_consumed is False)}
        case "dead":
            event |= {"dead_letters": 1, "dead_at_ms": at_ms}
        case "cancellation":
            event |= _cancellation(row, said, key)
            event["unconsumed_cancellations"] = int(is_consumed is False)
        case "damage":
            event["damaged"] = 1
        case "gap":
            event["gaps"] = 1
    return event


def _delivery(row: Row, said: Row, key: str | None) -> Row:
    """Returns the columns of a delivered message. Each value occurs twice, for the minimum and the maximum of an order."""
    columns = {column: said.get(name) for name, column in _SAID_AS.items()}
    columns |= {"message_transaction_id": row["unique_key"], "message_items": _marks(said)}
    times = {"delivered_at_ms": row["stored_at_ms"], "born_at_ms": row["born_at_ms"]}
    return {
        "deliveries": 1,
        "commits": int(row["kind"] == RecordKind.COMMITTED),
        "misnamed": int(said.get("order_id") != key),
        "unreadable": int(not _is_readable(said, REQUIRED)),
        "without_items": int(said.get("items") is None and (said.get("version") or 0) >= _ITEMS_SINCE_VERSION),
        **_twice(columns | times),
    }


def _cancellation(row: Row, said: Row, key: str | None) -> Row:
    """Returns the columns of the message of a cancellation, with minima and maxima."""
    columns = {column: said.get(name) for name, column in _SAID_OF_CANCELLATION_AS.items()}
    return {
        "cancel_deliveries": 1,
        "cancel_commits": int(row["kind"] == RecordKind.COMMITTED),
        "cancel_misnamed": int(said.get("order_id") != key),
        "cancel_unreadable": int(not _is_readable(said, REQUIRED_OF_CANCELLATION)),
        "cancel_delivered_at_ms": row["stored_at_ms"],
        **_twice(columns | {"cancel_message_id": row["unique_key"], "cancel_born_at_ms": row["born_at_ms"]}),
    }


def _twice(columns: Row) -> Row:
    return {**columns, **{f"last_{name}": value for name, value in columns.items()}}


def _is_readable(said: Row, required: Sequence[str]) -> bool:
    """Returns True if consumers can read the body."""
    return all(said.get(name) is not None for name in required) and said.get("version", 1) >= 1


def _said(body: bytes | None) -> Row:
    """Returns the fields of the body with the right types; empty if it is not a JSON object."""
    try:
        read = json.loads((body or b"").decode(errors="replace"), parse_constant=_refused)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(read, dict):
        return {}
    said: Row = {name: text for name in _TEXTS if (text := _text(read.get(name))) is not None}
    said |= {name: number for name in _NUMBERS if (number := _number(read.get(name), _BITS_OF.get(name, 64))) is not None}
    return said | {"items": read["items"]} if isinstance(read.get("items"), list) else said


def _text(value: Any) -> str | None:
    """Returns the text that Spark would read as a string field. Spark converts other JSON values to their JSON text."""
    return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _number(value: Any, bits: int) -> int | None:
    return value if type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON")


def _marks(said: Row) -> int | None:
    """Returns the sum of the hashes of all items; None for a body without items, as in version 1."""
    return None if "items" not in said else sum(map(_mark, said["items"]))


def _mark(item: Any) -> int:
    """Returns the hash of an item. A malformed item gets a hash that no item of an order has."""
    fields = item if isinstance(item, dict) else {}
    return mark_of_item(_text(fields.get("name")), _number(fields.get("quantity"), 64))


def _unnamed(row: Row) -> str:
    """Returns the name of a record without an order, or of a part of the log as in `log_gaps.name_of_stretch`."""
    if row["role"] not in ("damage", "gap"):
        return row["unique_key"] or f"at {row['commit_log_offset']}"
    again = "later" if row["stored_at_ms"] is None else f"at {row['stored_at_ms']} ms"
    return f"from {row['commit_log_offset']} to {row['commit_log_offset'] + row['size']}, whole again {again}"
