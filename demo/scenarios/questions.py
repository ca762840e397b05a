"""Questions of a verdict: one SQL statement each, about the customer of a run."""

from __future__ import annotations

from typing import Final

from demo.scenarios.scenario import Database, Question


def one_order(state: str) -> Question:
    """Asks whether the customer has exactly one order in this state."""
    sql = f"SELECT count(*) FROM orders WHERE customer = :customer AND state = '{state}'"
    return Question(f"How many orders are {state}?", Database.ORDERS, sql, 1)


def entries(expected: int) -> Question:
    """Asks for the number of credits and reversals."""
    sql = "SELECT count(*) FROM credits WHERE customer = :customer"
    return Question("How many entries does the credit database have?", Database.CREDITS, sql, expected)


def points(expected: int) -> Question:
    """Asks for the sum of all entries."""
    sql = "SELECT coalesce(sum(points), 0) FROM credits WHERE customer = :customer"
    return Question("How many points are that?", Database.CREDITS, sql, expected)


def _orders(expected: int) -> Question:
    sql = "SELECT count(*) FROM orders WHERE customer = :customer"
    return Question("How many orders does the order database have?", Database.ORDERS, sql, expected)


def _credited_orders(expected: int) -> Question:
    sql = "SELECT count(DISTINCT order_id) FROM credits WHERE customer = :customer"
    return Question("For how many different orders?", Database.CREDITS, sql, expected)


NO_ORDER_NO_CREDIT: Final = (_orders(0), entries(0))
ONE_ORDER_ONE_CREDIT: Final = (_orders(1), entries(1), _credited_orders(1))
