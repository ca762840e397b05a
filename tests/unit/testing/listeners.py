"""Listeners whose return values the test chooses."""

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState
from rocketmq_broker.message import Message, MessageExt

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
