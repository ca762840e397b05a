"""A listener whose transactions stay pending, for tests of the operators' tools."""

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt


class Undecided:
    """A listener that always returns UNKNOWN."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN
