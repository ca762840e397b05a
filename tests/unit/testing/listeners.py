"""Listeners whose return values the test chooses."""

from typing import Any

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, TransactionSendResult
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.testing.rocketmq import RocketMQ

COMMIT, ROLLBACK, UNKNOWN = (
    LocalTransactionState.COMMIT_MESSAGE,
    LocalTransactionState.ROLLBACK_MESSAGE,
    LocalTransactionState.UNKNOWN,
)


class Transactions:
    """A transaction listener that returns fixed states. Counts its executions and check-backs."""

    def __init__(self, executed: LocalTransactionState = COMMIT, checked: LocalTransactionState = COMMIT) -> None:
        self.executed, self.checked = executed, checked
        self.executions = self.checks = 0

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        self.executions += 1
        return self.executed

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checks += 1
        return self.checked


class InTurn:
    """A transaction listener that returns the given states: the first for the local transaction, the others for check-backs."""

    def __init__(self, *states: LocalTransactionState) -> None:
        self._states = list(states)

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return self._states.pop(0)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return self._states.pop(0)


class AsSent:
    """A transaction listener that returns the state passed by the sender, and UNKNOWN for every check-back."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        assert isinstance(arg, LocalTransactionState)
        return arg

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return UNKNOWN


class Consumption:
    """A consumer's listener that keeps its messages. Its first `failures` calls fail."""

    def __init__(self, failures: int = 0) -> None:
        self.got: list[MessageExt] = []
        self.failures = failures

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        self.got += messages
        if self.failures > 0:
            self.failures -= 1
            return ConsumeStatus.RECONSUME_LATER
        return ConsumeStatus.CONSUME_SUCCESS

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.got]


def order(key: str = "order-1", **settings: object) -> Message:
    return Message.of("orders", b"1", keys=[key], **settings)  # type: ignore[arg-type]


async def send_in_transaction(rocketmq: RocketMQ, listener: Any, message: Message | None = None) -> TransactionSendResult:
    """Sends an order, or the message, in a transaction of a new producer of the group `p`."""
    producer = await rocketmq.transaction_producer("p", listener)
    return await producer.send_message_in_transaction(order() if message is None else message)


def to_dead_letters(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Fails for good: the messages become dead letters without a redelivery."""
    context.delay_level_when_next_consume = -1
    return ConsumeStatus.RECONSUME_LATER
