"""What the user sees: tables for people, JSON for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from broker.admin.discarded import DiscardedMessage
from broker.admin.durations import duration_text
from broker.protocol.bodies import TransactionInfo

WIDTH_OF_NO_TERMINAL: Final = 250
"""Columns, where the output goes into a file or a pipe."""


def print_json(rows: Iterable[tuple[str, msgspec.Struct]]) -> None:
    """An array with an object for each row; `broker` is the address of the one that has it."""
    objects = [{"broker": address, **msgspec.to_builtins(row)} for address, row in rows]
    print(msgspec.json.format(msgspec.json.encode(objects), indent=2).decode())


def print_pending(rows: Sequence[tuple[str, TransactionInfo]]) -> None:
    """Pending transactions, one a line."""
    table = _table(
        rows, "age", "checks", "next check", "producer group", "online", "topic", "keys", "transaction id", "half offset"
    )
    for address, info in rows:
        _add(
            table, rows, address, duration_text(info.age_ms or 0), _checks(info), _next_check(info), info.producer_group,
            "yes" if info.is_producer_online else "no", info.topic, " ".join(info.keys),
            info.transaction_id or info.problem or "", str(info.half_offset),
        )  # fmt: skip
    _console().print(table)


def print_discarded(rows: Sequence[tuple[str, DiscardedMessage]], now_ms: int) -> None:
    """Discarded messages, one a line."""
    table = _table(rows, "discarded", "checks", "producer group", "topic", "keys", "transaction id", "message id", "since then")
    for address, message in rows:
        _add(
            table, rows, address, f"{duration_text(max(0, now_ms - message.discarded_ms))} ago", str(message.checks),
            message.producer_group, message.topic, " ".join(message.keys), message.transaction_id or "", message.message_id,
            "resumed" if message.is_resumed else "",
        )  # fmt: skip
    _console().print(table)


def print_decided(rows: Sequence[tuple[str, TransactionInfo]]) -> None:
    """Decisions with a reason, one a line."""
    table = _table(rows, "decided at", "outcome", "reason", "producer group", "topic", "keys", "transaction id", "half offset")
    for address, info in rows:
        _add(
            table, rows, address, _time(info.decided_ms), info.state, info.reason or "", info.producer_group, info.topic,
            " ".join(info.keys), info.transaction_id or "", str(info.half_offset),
        )  # fmt: skip
    _console().print(table)


def print_transactions(rows: Sequence[tuple[str, TransactionInfo]]) -> None:
    """All that is known of each transaction, one below the other."""
    for address, info in rows:
        grid = Table.grid(padding=(0, 2))
        for name, value in _facts(address, info):
            if value:
                grid.add_row(Text(name, style="dim"), Text(_printable(value)))
        grid.add_row()
        _console().print(grid)


def _facts(address: str, info: TransactionInfo) -> list[tuple[str, str]]:
    return [
        ("state", info.state),
        ("reason", info.reason or ""),
        ("decided at", _time(info.decided_ms)),
        ("transaction id", info.transaction_id or ""),
        ("half offset", str(info.half_offset)),
        ("begun at", _time(info.begun_ms or None)),
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
        return f"answer owed for {duration_text(info.answer_owed_ms)}"
    wait = f"in {duration_text(info.next_check_in_ms)}"
    is_last = info.check_max is not None and (info.checks or 0) >= info.check_max
    return f"discarded {wait}" if is_last else wait


def _online(info: TransactionInfo) -> str:
    if info.is_producer_online is None:
        return ""
    return " (online)" if info.is_producer_online else " (nobody online)"


def _time(ms: int | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000)) if ms is not None else ""


def _table(rows: Sequence[tuple[str, object]], *columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in (*_broker_column(rows), *columns):
        table.add_column(column, overflow="fold")
    return table


def _add(table: Table, rows: Sequence[tuple[str, object]], address: str, *cells: str) -> None:
    table.add_row(*(Text(_printable(cell)) for cell in ([address] if _broker_column(rows) else []) + list(cells)))


def _broker_column(rows: Sequence[tuple[str, object]]) -> list[str]:
    """Which broker has it is worth a column if there are several."""
    return ["broker"] if len({address for address, _ in rows}) > 1 else []


def _printable(text: str) -> str:
    """What producers wrote into names and keys must not reach the terminal as a control sequence."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_NO_TERMINAL)
