"""Rules of a simulated database, which refuse the rows of one order like a constraint or a trigger."""

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class RuledRow(NamedTuple):
    """The fields of a new row that rules check."""

    order_id: str
    amount_cents: int | None
    """The amount in cents, or None if the row has no amount."""


@dataclass(slots=True)
class OrderRule:
    """Refuses the rows of the `nth` order until `ends_s`."""

    nth: int
    ends_s: float
    takes_nothing: bool = False
    """True if the rule accepts a row with the amount 0."""
    _order_id: str | None = None
    _seen: set[str] = field(default_factory=set)

    def refuses(self, row: RuledRow, now_s: float) -> bool:
        """Returns True if the rule refuses the row."""
        if now_s >= self.ends_s:
            return False
        self._seen.add(row.order_id)
        if self._order_id is None and len(self._seen) >= self.nth:
            self._order_id = row.order_id
        return row.order_id == self._order_id and not (self.takes_nothing and row.amount_cents == 0)


@dataclass
class OrderRules:
    """The rules of one database."""

    now_s: Callable[[], float]
    fired: Callable[[], object]
    """Called when a rule refuses a statement."""
    rules: list[OrderRule] = field(default_factory=list)
    orders: set[str] = field(default_factory=set)
    """The orders that a rule has refused."""

    def append(self, rule: OrderRule) -> None:
        """Adds a rule."""
        self.rules.append(rule)

    def check(self, rows: Iterable[RuledRow]) -> None:
        """Raises the driver's error of a trigger if a rule refuses one of these rows. The whole statement then fails."""
        if not self.rules:
            return
        refused = {row.order_id for row in rows for rule in self.rules if rule.refuses(row, self.now_s())}
        if refused:
            self.orders |= refused
            self.fired()
            error = sqlite3.IntegrityError("a rule refuses the order")
            error.sqlite_errorname, error.sqlite_errorcode = "SQLITE_CONSTRAINT_TRIGGER", sqlite3.SQLITE_CONSTRAINT_TRIGGER
            raise error

    def end_all(self) -> None:
        """Ends all rules."""
        self.rules.clear()
