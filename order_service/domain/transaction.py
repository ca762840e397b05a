"""The states of an order's transaction."""

from enum import StrEnum


class TransactionState(StrEnum):
    """COMMITTED and ROLLED_BACK are final, and stand in the transaction's row. UNKNOWN is in no row: check-back will decide."""

    COMMITTED = "COMMITTED"
    ROLLED_BACK = "ROLLED_BACK"
    UNKNOWN = "UNKNOWN"
