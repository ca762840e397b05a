"""Builds the events of the credit service's inbox. Both engines use them.

The credit service stores a message in the table `rocketmq_inbox`, acknowledges it, and removes the row in the database
transaction that writes its entry. The messages about refused orders leave the service through the same table. A row belongs to
the order that its body names, like a record of the commit log.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from pipelines.judging.history import COUNTS, IN_THE_INBOX, KEY
from pipelines.judging.route import Route
from rocketmq_broker.message import properties

STATUSES: Final = {"NEW": "waiting", "FAILED": "waiting", "PARKED": "parked", "DISMISSED": "dismissed"}
"""Maps each status of a row to the prefix of its column's name. Only waiting messages are processed automatically."""
REFUSALS: Final = ".refusals"
"""The suffix of the name of the consumer of refusals. It follows the name of the consumer group."""

_COUNTED: Final = tuple(name for name in COUNTS if name.startswith(IN_THE_INBOX))
INBOX_COLUMNS: Final = (*KEY, *_COUNTED, "unknown_rows", "received_at_ms", "latest_at_ms", "last_error")
"""The columns of EVENT_COLUMNS that the events have."""


def inbox_events(rows: Iterable[Mapping[str, Any]], route: Route) -> Iterator[dict[str, Any]]:
    """Yields an event for each row of the consumer group that writes the credits.

    The group's messages about refused orders are rows of the same table, and also have events.
    """
    for row in rows:
        column = _column(row, route)
        if column is not None:
            yield _event(row, column)


def _column(row: Mapping[str, Any], route: Route) -> str | None:
    """Returns the column that counts the row: `unknown_rows` for a topic or a status that no service writes.

    Returns None for other consumers' rows, and for refusals that were dismissed.
    """
    kinds = {
        (route.consumer_group, route.topic): "credits",
        (route.consumer_group, route.cancellation_topic): "reversals",
        (route.consumer_group + REFUSALS, row["topic"]): "refusals",
    }
    kind, status = kinds.get((row["consumer"], row["topic"])), STATUSES.get(row["status"])
    if row["consumer"] not in (route.consumer_group, route.consumer_group + REFUSALS) or (kind, status) == _NOT_SENT:
        return None
    return "unknown_rows" if kind is None or status is None else f"{status}_{kind}"


_NOT_SENT: Final = ("refusals", "dismissed")


def _event(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Returns the event of a row. The event of a dismissed row has no time."""
    order_id = order_id_of(row["body"], row["properties"])
    received_at_ms = None if column.startswith("dismissed_") else row["received_at_ms"]
    return {
        "order_id": order_id,
        "unnamed": f"inbox {row['message_key']}" if order_id is None else None,
        column: 1,
        "received_at_ms": received_at_ms,
        "latest_at_ms": received_at_ms,
        "last_error": row["last_error"],
    }


def order_id_of(body: bytes, properties_text: str) -> str | None:
    """Returns the order id in the body of a message. If the body has none, returns the first of the message's keys, or None."""
    order_id = _read(body).get("order_id")
    if isinstance(order_id, str) and order_id:
        return order_id
    keys = _read(properties_text).get(properties.KEYS)
    return (keys.split(" ")[0] or None) if isinstance(keys, str) else None


def _read(text: bytes | str) -> Mapping[str, Any]:
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return said if isinstance(said, dict) else {}
