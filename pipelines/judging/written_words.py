"""The services' words in their rows: states, kinds, and prefixes of message ids.

The reconciliation imports no service, so that one mistake cannot blind both. A test compares these words with the services' own.
"""

from typing import Final

PLACED: Final = "PLACED"
AWAITING_PAYMENT: Final = "AWAITING_PAYMENT"
PAID: Final = "PAID"
CANCELLED: Final = "CANCELLED"
EXPIRED: Final = "EXPIRED"
ORDER_STATES: Final = (PLACED, AWAITING_PAYMENT, PAID, CANCELLED, EXPIRED)

PENDING: Final = "PENDING"
COMMITTED: Final = "COMMITTED"
ROLLED_BACK: Final = "ROLLED_BACK"
TRANSACTION_STATES: Final = (PENDING, COMMITTED, ROLLED_BACK)

ORDER: Final = "order"
CANCELLATION: Final = "cancellation"
TRANSACTION_KINDS: Final = (ORDER, CANCELLATION)

CREDIT: Final = "credit"
REVERSAL: Final = "reversal"
ENTRY_KINDS: Final = (CREDIT, REVERSAL)

BY_REPAIR: Final = "repair "
"""Before the id of a repair, in a reversal that no message has brought."""
BY_REFUSAL: Final = "refused "
"""Before the message's id, in both entries of an order that was refused."""
