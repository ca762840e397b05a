"""Prints tables of transactions."""

from collections.abc import Sequence

from rocketmq_broker.admin.broker_requests.discarded import DiscardedMessage
from rocketmq_broker.admin.output.durations import ago_text, duration_text
from rocketmq_broker.admin.output.printing import print_facts, print_table
from rocketmq_broker.admin.output.times import time_text
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo


def print_pending(rows: Sequence[tuple[str, TransactionInfo]]) -> None:
    """Prints pending transactions, one per line."""
    print_table(
        ("age", "checks", "next check", "producer group", "online", "topic", "keys", "transaction id", "half offset"),
        [(address, _pending_cells(info)) for address, info in rows],
    )


def print_discarded(rows: Sequence[tuple[str, DiscardedMessage]], now_ms: int) -> None:
    """Prints discarded messages, one per line."""
    print_table(
        ("discarded", "checks", "producer group", "topic", "keys", "transaction id", "message id", "since then"),
        [(address, _discarded_cells(message, now_ms)) for address, message in rows],
    )


def print_decided(rows: Sequence[tuple[str, TransactionInfo]]) -> None:
    """Prints decisions with their reasons, one per line."""
    print_table(
        ("decided at", "outcome", "reason", "producer group", "topic", "keys", "transaction id", "half offset"),
        [(address, _decided_cells(info)) for address, info in rows],
    )


def print_transactions(rows: Sequence[tuple[str, TransactionInfo]]) -> None:
    """Prints all known facts about each transaction."""
    for address, info in rows:
        print_facts(_facts(address, info))


def _pending_cells(info: TransactionInfo) -> list[str]:
    return [
        duration_text(info.age_ms or 0),
        _checks(info),
        _next_check(info),
        info.producer_group,
        "yes" if info.is_producer_online else "no",
        info.topic,
        " ".join(info.keys),
        info.transaction_id or info.problem or "",
        str(info.half_offset),
    ]


def _discarded_cells(message: DiscardedMessage, now_ms: int) -> list[str]:
    return [
        ago_text(message.discarded_ms, now_ms),
        str(message.checks),
        message.producer_group,
        message.topic,
        " ".join(message.keys),
        message.transaction_id or "",
        message.message_id,
        "resumed" if message.is_resumed else "",
    ]


def _decided_cells(info: TransactionInfo) -> list[str]:
    return [
        time_text(info.decided_ms),
        info.state,
        info.reason or "",
        info.producer_group,
        info.topic,
        " ".join(info.keys),
        info.transaction_id or "",
        str(info.half_offset),
    ]


def _facts(address: str, info: TransactionInfo) -> list[tuple[str, str]]:
    return [
        ("state", info.state),
        ("reason", info.reason or ""),
        ("decided at", time_text(info.decided_ms)),
        ("transaction id", info.transaction_id or ""),
        ("half offset", str(info.half_offset)),
        ("begun at", time_text(info.begun_ms or None)),
        ("age", duration_text(info.age_ms) if info.age_ms is not None else ""),
        ("checks", _checks(info)),
        ("next check", _next_check(info)),
        ("producer group", f"{info.producer_group}{_online(info)}"),
        ("topic", f"{info.topic}, queue {info.queue_id}" if info.topic else ""),
        ("keys", " ".join(info.keys)),
        ("tag", info.tags or ""),
        ("body", f"{info.body_size} bytes" if info.body_size is not None else ""),
        ("message id", info.message_id or ""),
        ("resumed from", str(info.resumed_from) if info.resumed_from is not None else ""),
        ("problem", info.problem or ""),
        ("broker", address),
    ]


def _checks(info: TransactionInfo) -> str:
    if info.checks is None:
        return ""
    return f"{info.checks} of {info.check_max}" if info.check_max is not None else str(info.checks)


def _next_check(info: TransactionInfo) -> str:
    if info.next_check_in_ms is None:
        return ""
    if info.answer_owed_ms is not None:
        return f"waiting for an answer for {duration_text(info.answer_owed_ms)}"
    wait = f"in {duration_text(info.next_check_in_ms)}"
    is_last = info.check_max is not None and (info.checks or 0) >= info.check_max
    return f"discarded {wait}" if is_last else wait


def _online(info: TransactionInfo) -> str:
    if info.is_producer_online is None:
        return ""
    return " (online)" if info.is_producer_online else " (none online)"
