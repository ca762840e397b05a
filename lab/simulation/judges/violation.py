"""The guarantees that the judges check in a simulation, and their violations."""

from dataclasses import dataclass
from enum import StrEnum


class Promise(StrEnum):
    """A guarantee that must hold in each simulation."""

    ONE_OUTCOME = "A transaction has one outcome."
    VISIBLE_AFTER_COMMIT = "A consumer sees a message of a transaction only after its COMMIT."
    LIES_THERE_ONCE = "A committed message lies in its queue once."
    ACKNOWLEDGED_IS_KEPT = "A message that the broker acknowledged is there after a crash."
    OFFSET_BEHIND_WORK = "A consumer's offset never passes a message that the consumer did not handle."
    STORED_IS_PROCESSED = "A message leaves an inbox only with the rows that it demands."
    INNOCENT_IS_KEPT = "Only an order that fails while others pass is refused or parked."
    CREDIT_HAS_ORDER = "Each credit has its order."
    BALANCE_IS_SUM = "A balance is the sum of the customer's entries."
    ORDER_HAS_CREDIT = "An acknowledged order gets its credit once."
    ORDER_HAS_SHIPMENT = "A credited order is shipped, or found short."
    TOLD_ORDER_IS_KEPT = "A customer who was told that his order is placed finds it."
    REFUSED_IS_CLOSED = "An order that the credit service refuses is closed in its ledger first."
    NOTHING_PENDING = "In the end no transaction waits for its decision, and no message for its consumer."
    LISTED_FOR_A_PERSON = "What waits for a person is on a list that names it."
    ANSWERS_FIT = "An answer fits what the customer asked and was told before."
    BOOKS_AGREE = "The reconciliation finds nothing wrong in the books."
    NO_TRACEBACK = "No error is left to nobody."
    SOMEBODY_IS_SERVED = "Some customer gets an answer: a world in which nothing happens proves nothing."
    RUNS_AGAIN = "Each program serves again once the faults are over."
    JUDGES_AGREE = "The judges agree on each order."


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated guarantee. `text` describes the violation. `keys` are the orders, transactions or messages concerned."""

    promise: str
    text: str
    keys: tuple[str, ...] = ()


class OrderVerdict(StrEnum):
    """The verdict on an order at the end of a simulation."""

    SETTLED = "settled"
    """The order has the entries that its state requires."""
    WAITS_FOR_A_PERSON = "waits for a person"
    """The order lacks an entry, and is on a list for operators: as a parked message, a dead letter or a discarded half
    message.
    """
    BROKEN = "broken"
