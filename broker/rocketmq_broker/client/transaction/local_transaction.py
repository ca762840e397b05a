"""Builds a transaction listener from two functions instead of a class."""

from collections.abc import Awaitable, Callable

from rocketmq_broker.client.producer.send_result import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt

Execute = Callable[[Message, object], LocalTransactionState | Awaitable[LocalTransactionState]]
Check = Callable[[MessageExt], LocalTransactionState | Awaitable[LocalTransactionState]]


class LocalTransaction:
    """A TransactionListener made by `local_transaction`. Calling it runs the local transaction."""

    def __init__(self, execute: Execute, check: Check | None = None) -> None:
        """`check` answers check-backs. `answers_check_backs` may set it later, before the producer starts."""
        self.execute_local_transaction = execute
        self.__name__ = getattr(execute, "__name__", "local_transaction")
        self.__doc__ = execute.__doc__
        if check is not None:
            self.check_local_transaction = check

    def __call__(self, message: Message, arg: object) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Calls the decorated function directly, for tests."""
        return self.execute_local_transaction(message, arg)

    def answers_check_backs(self, check: Check) -> Check:
        """Decorates the function, async or not, that returns the result of a message's local transaction."""
        self.check_local_transaction = check
        return check


def local_transaction(execute: Execute) -> LocalTransaction:
    """Converts a function with the parameters `message` and `arg`, async or not, into a transaction listener.

    @local_transaction
    def pay(message, arg): ...

    @pay.answers_check_backs
    def look_up(message): ...

    async with TransactionProducer("order-service", pay) as producer: ...
    """
    return LocalTransaction(execute)
