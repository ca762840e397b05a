"""The listener whose transactions stay pending, for tests of what operators see."""

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt


class Undecided:
    """Never knows."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN
