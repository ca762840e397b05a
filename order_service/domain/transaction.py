"""What can become of an order's transaction."""

from enum import StrEnum


class TransactionState(StrEnum):
    """COMMITTED and ROLLED_BACK are final and stored; UNKNOWN is what nobody can say yet: check-back will decide it."""

    COMMITTED = "COMMITTED"
    ROLLED_BACK = "ROLLED_BACK"
    UNKNOWN = "UNKNOWN"
