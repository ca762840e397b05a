"""What Apache's sample of transactional messages does: a counter and a map in memory. Read it, and copy `stored.py` instead."""

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt, TransactionProducer

TAGS = ("TagA", "TagB", "TagC", "TagD", "TagE")


class CountingListener:
    """Decides by `index % 3`, at the check-back alone: 0 stays UNKNOWN, 1 is COMMIT, 2 is ROLLBACK."""

    def __init__(self) -> None:
        """Begins at 0, and knows no transaction."""
        self._index = 0
        self._remainders: dict[str | None, int] = {}

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Counts, does no work, and leaves each decision to the check-back."""
        self._remainders[message.transaction_id] = self._index % 3
        self._index += 1
        return LocalTransactionState.UNKNOWN

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Answers from memory. What it does not remember, it takes for done."""
        match self._remainders.get(message.transaction_id):
            case 0:
                return LocalTransactionState.UNKNOWN
            case 2:
                return LocalTransactionState.ROLLBACK_MESSAGE
            case _:
                return LocalTransactionState.COMMIT_MESSAGE


async def send_ten(producer: TransactionProducer, topic: str) -> None:
    """Sends the ten messages, with five tags in turn and a key each."""
    for number in range(10):
        message = Message.of(topic, f"Hello RocketMQ {number}", tags=TAGS[number % 5], keys=[f"KEY{number}"])
        await producer.send_message_in_transaction(message, number)
