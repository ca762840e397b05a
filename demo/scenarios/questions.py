"""Questions about the databases after a run. Each question is an SQL statement about the run's customer."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from demo.books import CREDIT_DATABASE, ORDER_DATABASE


class Database(Enum):
    """The services' databases."""

    ORDERS = ORDER_DATABASE
    CREDITS = CREDIT_DATABASE


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a database, and the expected answer."""

    words: str
    database: Database
    sql: str
    """A query that returns one number. The parameter `:customer` is the customer of the run."""
    expected: int


@dataclass(frozen=True, slots=True)
class ScenarioFinding:
    """A question about the databases after a run, and the answer."""

    question: Question
    answer: int

    @property
    def is_right(self) -> bool:
        """True if the answer is as expected."""
        return self.answer == self.question.expected


def one_order(state: str) -> Question:
    """Returns a question that counts the customer's orders in this state. The expected answer is 1."""
    sql = f"SELECT count(*) FROM orders WHERE customer = :customer AND state = '{state}'"
    return Question(f"How many orders are {state}?", Database.ORDERS, sql, 1)


def entries(expected: int) -> Question:
    """Returns a question that counts the customer's credits and reversals."""
    sql = "SELECT count(*) FROM credits WHERE customer = :customer"
    return Question("How many entries does the credit database have?", Database.CREDITS, sql, expected)


def points(expected: int) -> Question:
    """Returns a question that sums the points of the customer's credits and reversals."""
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
