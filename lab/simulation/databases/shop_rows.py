"""The rows that the shop's services write, as the history names them."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from lab.simulation.databases.rules import RuledRow
from rocketmq_broker.testing.simulation.databases.connection import Parameters
from rocketmq_broker.testing.simulation.databases.gate import RowNote

_NAMED_TABLES: Final = ("transactions", "orders", "credits", "shipments", "rocketmq_inbox")
_RULED_TABLES: Final = ("orders", "credits", "shipments")
_OF_INBOX: Final = ("DELETE FROM rocketmq_inbox", "UPDATE rocketmq_inbox")
_INSERT: Final = re.compile(r"INSERT INTO (\w+) \(([^)]*)\)")
_KEYS: Final = ("order_id", "transaction_id")


def shop_rows(sql: str, parameters: Parameters) -> list[RowNote] | None:
    """Returns a note for each row of the shop that a statement writes, or None if it writes none."""
    if sql.startswith("INSERT"):
        return _inserted(sql, parameters)
    if sql.startswith(_OF_INBOX):
        return [("inbox changed", ())]
    if sql.startswith("UPDATE orders"):
        return [("orders changed", tuple(value for value in parameters if _is_id(value)))]
    return None


def ruled_rows(sql: str, parameters: Parameters) -> Iterator[RuledRow]:
    """Yields the rows of an INSERT into a table that has rules: orders, credits or shipments."""
    found = _INSERT.match(sql)
    if found is None or found[1] not in _RULED_TABLES:
        return
    names = [name.strip() for name in found[2].split(",")]
    order_id, amount = names.index("order_id"), names.index("amount_cents") if "amount_cents" in names else None
    for begin in range(0, len(parameters) - len(names) + 1, len(names)):
        yield RuledRow(str(parameters[begin + order_id]), None if amount is None else int(parameters[begin + amount]))


@cache
def _columns(sql: str) -> tuple[str, tuple[int, ...], int, int | None] | None:
    """Parses an INSERT: returns the table, the positions of the keys, the row's length, and the position of state or kind."""
    found = _INSERT.match(sql)
    if found is None or found[1] not in _NAMED_TABLES:
        return None
    names = [name.strip() for name in found[2].split(",")]
    state = next((names.index(name) for name in ("state", "kind") if name in names), None)
    return found[1], tuple(names.index(key) for key in _KEYS if key in names), len(names), state


def _inserted(sql: str, parameters: Parameters) -> list[RowNote]:
    if (columns := _columns(sql)) is None:
        return []
    table, places, length, state = columns
    rows = [parameters[begin : begin + length] for begin in range(0, len(parameters) - length + 1, length)]
    return [
        (f"{table} {row[state]}" if state is not None else table, tuple(str(row[place]) for place in places if row[place]))
        for row in rows
    ]


def _is_id(value: object) -> bool:
    return isinstance(value, str) and len(value) == 36 and value.count("-") == 4
