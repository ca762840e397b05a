"""Shows how the producers react if the broker has stored a message but reports that it is not yet durable or replicated."""

import asyncio

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing import RocketMQ

STATUSES = ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE


class Shop:
    """A listener that counts local transactions."""

    def __init__(self) -> None:
        self.transactions = 0

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        self.transactions += 1
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.ROLLBACK_MESSAGE


async def outcome(rocketmq: RocketMQ, status: ResponseCode) -> str:
    """Sends a message and a half message. The broker stores both, but responds with `status`.

    Returns a line that describes the result.
    """
    shop, topic = Shop(), status.name.lower()
    producer = await rocketmq.transaction_producer(f"shop-{topic}", shop)
    await producer.create_topic(topic)
    rocketmq.refuse_sends(status, times=2)
    plain = await producer.send(Message.of(topic, "a pen"))
    half = await producer.send_message_in_transaction(Message.of(topic, "a book", keys=[topic]))
    await rocketmq.settle()
    visible = [message.text for message in await rocketmq.messages(topic)]
    transaction = await rocketmq.rolled_back(topic)
    return (
        f"{status.name}: send returns {plain.send_status.name}, visible {visible} | "
        f"half message {half.send_status.name}, local transactions {shop.transactions}, "
        f"{half.local_transaction_state.name}, the broker has {transaction.state}"
    )


async def main() -> None:
    """Prints a line for each status."""
    async with RocketMQ(seed=1) as rocketmq:
        for status in STATUSES:
            print(await outcome(rocketmq, status))


if __name__ == "__main__":
    asyncio.run(main())
