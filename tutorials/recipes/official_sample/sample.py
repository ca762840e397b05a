"""Apache's sample of transactional messages, with its state in memory. Do not copy it. Copy `stored.py` instead."""

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt, TransactionProducer

TAGS = ("TagA", "TagB", "TagC", "TagD", "TagE")


class CountingListener:
    """Decides each transaction at its check-back, by `index % 3`: 0 is UNKNOWN, 1 is COMMIT and 2 is ROLLBACK."""

    def __init__(self) -> None:
        """Starts the counter at 0."""
        self._index = 0
        self._remainders: dict[str | None, int] = {}

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Counts the message and returns UNKNOWN, so that the broker sends a check-back."""
        self._remainders[message.transaction_id] = self._index % 3
        self._index += 1
        return LocalTransactionState.UNKNOWN

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision in memory, or COMMIT for an unknown transaction."""
        match self._remainders.get(message.transaction_id):
            case 0:
                return LocalTransactionState.UNKNOWN
            case 2:
                return LocalTransactionState.ROLLBACK_MESSAGE
            case _:
                return LocalTransactionState.COMMIT_MESSAGE


async def send_ten(producer: TransactionProducer, topic: str) -> None:
    """Sends ten messages with different keys and five alternating tags."""
    for number in range(10):
        message = Message.of(topic, f"Hello RocketMQ {number}", tags=TAGS[number % 5], keys=[f"KEY{number}"])
        await producer.send_message_in_transaction(message, number)
