"""Collects the state of a session as values for JSON."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from credit_service.adapters.ledger import CONSUMER
from demo.play.buttons import BUTTONS, DEFAULTS
from demo.play.drawing import svg_of
from demo.play.services.side import CREDIT_SERVICE, ORDER_SERVICE, Row, SessionEvent
from demo.play.system import PlayedSystem
from demo.play.wording import translated
from demo.play.words import Press, pressed_words
from order_messages import credit_refused, order_cancelled
from order_service.adapters.order_broker import PRODUCER_GROUP
from rocketmq_broker.admin.output.records import marked_fields
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.record import Record, records_of
from rocketmq_broker.testing.journal import EventKind, JournalEvent
from rocketmq_broker.testing.transactions import Inspection

Json = dict[str, Any]

MARKS: Final = 6
"""The number of colours that distinguish neighbouring fields of a record."""
_BROKER: Final = "broker"
_ASKED: Final = " (requested by the test)"
_GROUPS: Final = {PRODUCER_GROUP: ORDER_SERVICE, CONSUMER: CREDIT_SERVICE}
"""Maps the beginning of an event's text, which is the name of a group, to the service of this group."""
_KINDS: Final = {topics.HALF_TOPIC: "half", topics.OP_HALF_TOPIC: "op"}
_SHOWN_TOPICS: Final = ("orders", topics.HALF_TOPIC, topics.OP_HALF_TOPIC, topics.CHECK_MAX_TIME_TOPIC)
_RARE_TOPICS: Final = (credit_refused.TOPIC, order_cancelled.TOPIC)
"""The topics whose empty queues are not shown."""


def state_of(system: PlayedSystem, seed: int, pressed: Sequence[Press], language: str) -> Json:
    """Returns the session's state in the given language. `pressed` contains the buttons pressed since the session's start."""
    rocketmq, log = system.rocketmq, system.log()
    inspection = rocketmq.inspection() if rocketmq.is_running else None
    orders, credits = system.orders.tables(), system.credits.tables()
    durable = len(rocketmq.commit_log(is_synced=True).rstrip(b"\0"))
    return {
        "seed": seed,
        "words": pressed_words(pressed, DEFAULTS),
        "now": datetime.fromtimestamp(rocketmq.time.wall_ns() // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "elapsed_s": round(rocketmq.time.elapsed_s, 3),
        "is_running": rocketmq.is_running,
        "is_shop_running": system.orders.is_running,
        "events": _events(system, language),
        "diagram": "" if system.diagram is None else svg_of(system.diagram, language),
        "orders": orders["orders"] and [_order(row, orders["transactions"]) for row in orders["orders"]],
        "credits": [_without(row, "id", "created_at_ms") for row in credits["credits"]],
        "balances": credits["balances"],
        "inbox": [_without(row, "body", "properties") for row in credits["rocketmq_inbox"]],
        "pending": _pending(inspection),
        "log": [_record(record, durable) for record in records_of(log)],
        "queues": _queues(inspection),
        "verdict": system.verdict(orders, credits, log).to_json(language),
        "sha256": hashlib.sha256(log).hexdigest(),
        "log_bytes": len(log),
        "buttons": [
            {
                "name": name, "arguments": dict(button.arguments), "is_enabled": button.is_enabled(system),
                "is_on": button.is_on(system), "label": translated(button.label, language), "group": button.group,
            }
            for name, button in BUTTONS.items()
        ],
    }  # fmt: skip


def record_bytes(log: bytes, offset: int) -> Json | None:
    """Returns the bytes of the record at a commit log offset, field by field; None if no record begins there."""
    found = next((record for record in records_of(log) if record.commit_log_offset == offset), None)
    if found is None:
        return None
    return {
        "offset": offset,
        "size": found.size,
        "fields": [
            {
                "name": field.name, "begin": field.begin, "hex": field.data.hex(" "), "value": field.value,
                "mark": place % MARKS,
            }
            for place, field in enumerate(marked_fields(log[offset : offset + found.size]))
        ],
    }  # fmt: skip


def _events(system: PlayedSystem, language: str) -> list[Json]:
    return [
        {
            "at_s": round(event.at_s, 3), "who": translated(_who(event), language), "kind": _kind(event),
            "text": translated(event.text.removesuffix(_ASKED), language),
        }
        for event in system.history()
    ]  # fmt: skip


def _kind(event: SessionEvent | JournalEvent) -> str:
    return event.kind.value if isinstance(event, JournalEvent) else event.kind


def _who(event: SessionEvent | JournalEvent) -> str:
    if isinstance(event, SessionEvent):
        return event.who
    if event.kind is EventKind.DECISION:
        return ORDER_SERVICE
    return next((service for group, service in _GROUPS.items() if event.text.startswith(group)), _BROKER)


def _order(row: Row, transactions: list[Row]) -> Row:
    found = next((one["state"] for one in transactions if one["order_id"] == row["order_id"]), None)
    return {name: row[name] for name in ("order_id", "customer", "total_cents", "currency", "state")} | {"transaction": found}


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def _pending(inspection: Inspection | None) -> list[Json]:
    return [
        {
            "transaction_id": one.transaction_id, "keys": list(one.keys), "topic": one.topic, "checks": one.checks,
            "next_check_in_s": one.next_check_in_s,
        }
        for one in (inspection.pending() if inspection is not None else [])
    ]  # fmt: skip


def _queues(inspection: Inspection | None) -> list[Json]:
    if inspection is None:
        return []
    counts = inspection.topics()
    found = []
    for topic in (*_SHOWN_TOPICS, *_RARE_TOPICS):
        for queue_id in range(counts.get(topic, 0)):
            offsets = [message.queue_offset for message in inspection.queue(topic, queue_id)]
            if not offsets and topic in _RARE_TOPICS:
                continue
            first, end = (offsets[0], offsets[-1] + 1) if offsets else (0, 0)
            found.append({"topic": topic, "queue_id": queue_id, "min": first, "max": end})
    return found


def _record(record: Record, durable: int) -> Json:
    topic = record.topic.decode(errors="replace")
    return {
        "offset": record.commit_log_offset,
        "size": record.size,
        "topic": topic,
        "kind": _KINDS.get(topic, "message"),
        "queue_id": record.queue_id,
        "queue_offset": record.queue_offset,
        "keys": (record.get_property(props.KEYS) or "").split(),
        "body": record.body.decode(errors="replace"),
        "is_durable": record.commit_log_offset + record.size <= durable,
    }
