"""A transactional message. The order service stores the order and uses it to answer check-backs; the broker stores the rest."""

from pathlib import Path

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from tutorials.halfway.services import call, die, state_of

PLACE = "INSERT OR IGNORE INTO orders VALUES (?, 'PLACED')"
CREDIT = "INSERT OR IGNORE INTO credits VALUES (?, 'GIVEN')"


class OrderService:
    """The order service's transaction listener, which stores orders. `is_killed` kills the process halfway."""

    def __init__(self, folder: Path, *, is_killed: bool = False) -> None:
        self.folder, self.is_killed = folder, is_killed

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Stores the order."""
        call(self.folder, "orders", (PLACE, message.keys))
        if self.is_killed:
            die()
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns COMMIT if the order is stored."""
        is_placed = state_of(self.folder, "orders", message.keys[0]) == "PLACED"
        return LocalTransactionState.COMMIT_MESSAGE if is_placed else LocalTransactionState.UNKNOWN


def give_credit(folder: Path, message: MessageExt) -> None:
    """Gives an order its credit, in the credit service. A second delivery changes nothing."""
    call(folder, "credits", (CREDIT, message.keys))
