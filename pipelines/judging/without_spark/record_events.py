"""Builds events from records in memory, with the SQL of `pipelines.judging.record_events`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from pipelines.judging.record_events import RECORD_EVENTS, role_of
from pipelines.judging.route import Progress, Route
from pipelines.judging.without_spark.in_sqlite import Row, mark_of_item, quoted, select
from pipelines.judging.without_spark.table_events import events_of
from rocketmq_commitlog.commit_log import Damage, LogRecord
from rocketmq_commitlog.record_columns import COLUMNS, RecordColumns, RecordKind

_WANTED: Final = (
    "commit_log_offset", "size", "kind", "topic", "queue_id", "queue_offset", "stored_at_ms", "born_at_ms", "unique_key", "keys",
    "real_topic", "decided_queue_offsets", "body",
)  # fmt: skip
_TEXTS: Final = ("order_id", "customer", "currency", "reason")
_NUMBERS: Final = {"total_cents": 64, "created_at_ms": 64, "cancelled_at_ms": 64, "version": 32}
"""The integer fields of a body, with their numbers of bits."""


def record_events(found: Iterable[LogRecord | Damage], route: Route, progress: Progress) -> list[dict[str, Any]]:
    """Returns an event for each record of the route, except op messages, and for each damaged part.

    Op messages only determine whether a half message is decided.
    """
    return events_of_rows(_columns(list(found)), route, progress)


def events_of_rows(records: Sequence[Row], route: Route, progress: Progress) -> list[dict[str, Any]]:
    """Returns the events of records that were converted to rows, with the columns of `rocketmq_commitlog`."""
    roles = _roles(records, route)
    decided = {offset for row in records if row["kind"] == RecordKind.OP for offset in _numbers(row["decided_queue_offsets"])}
    source, said = [], []
    for row in records:
        role = roles[_place(row)]
        if role is None or role == "op":
            continue
        names, fields = (row["keys"] or "").split(" "), _said(row["body"])
        for name in names if role == "damage" else names[:1]:
            source.append(
                {name: row[name] for name in _SOURCE}
                | {"role": role, "key": name or None, "order_id": fields.get("order_id", name or None), "is_carried": False}
                | {"is_decided": row["queue_offset"] in decided, "is_consumed": _is_consumed(row, progress)}
                | {"item_marks": _marks(fields)}
            )
            said.append({name: fields.get(name) for name in (*_TEXTS, *_NUMBERS)} | {"items": "items" in fields or None})
    return events_of(RECORD_EVENTS, source, said)


_SOURCE: Final = ("kind", "commit_log_offset", "size", "stored_at_ms", "born_at_ms", "unique_key")


def _roles(records: Iterable[Row], route: Route) -> dict[tuple[str, ...], str | None]:
    places = [dict(zip(_PLACE, place, strict=True)) for place in {_place(row) for row in records}]
    found = select(f"SELECT *, {role_of(route, quoted)} AS role FROM source", source=places) if places else []
    return {_place(row): row["role"] for row in found}


_PLACE: Final = ("kind", "topic", "real_topic")
"""The columns that determine a record's role."""


def _place(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in _PLACE)


def _columns(found: list[LogRecord | Damage]) -> list[Row]:
    """Converts records to rows."""
    batch = RecordColumns.of(found)
    columns = [COLUMNS[name](batch) for name in _WANTED]
    return [dict(zip(_WANTED, values, strict=True)) for values in zip(*columns, strict=True)]


def _numbers(texts: str | None) -> Iterator[int]:
    for text in (texts or "").split(","):
        with suppress(ValueError):
            yield int(text)


def _is_consumed(row: Row, progress: Progress) -> bool | None:
    """Returns True if the consumer group has acknowledged the record; None if it is unknown."""
    offsets = progress.get(row["topic"])
    return None if offsets is None else row["queue_offset"] < offsets.get(row["queue_id"], 0)


def _said(body: bytes | None) -> dict[str, Any]:
    """Returns the fields of the body with the right types; empty if it is not a JSON object."""
    try:
        read = json.loads((body or b"").decode(errors="replace"), parse_constant=_refused)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(read, dict):
        return {}
    said: dict[str, Any] = {name: text for name in _TEXTS if (text := _text(read.get(name))) is not None}
    said |= {name: number for name, bits in _NUMBERS.items() if (number := _number(read.get(name), bits)) is not None}
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
