"""The kinds and the states of transactions."""

from enum import StrEnum


class TransactionKind(StrEnum):
    """The subject of a transaction's message. An order has one of the first kind, and at most one COMMITTED of the second."""

    ORDER = "order"
    CANCELLATION = "cancellation"


class TransactionState(StrEnum):
    """COMMITTED, ROLLED_BACK and PENDING stand in the transaction's row, and only PENDING is not final.

    UNKNOWN is in no row: check-back will decide.
    """

    PENDING = "PENDING"
    """The order is stored and awaits its payment: check-back is answered UNKNOWN until it is paid, cancelled or expired."""
    COMMITTED = "COMMITTED"
    ROLLED_BACK = "ROLLED_BACK"
    UNKNOWN = "UNKNOWN"
