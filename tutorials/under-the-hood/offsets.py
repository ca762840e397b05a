"""Prints consumerOffset.json of a broker that has one consumer group and two transactions."""

import asyncio
import tempfile
from pathlib import Path

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ


class Decided:
    """A listener that commits each transaction immediately."""

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


async def credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Accepts all messages."""
    return ConsumeStatus.CONSUME_SUCCESS


async def main() -> None:
    """Sends two transactional messages, lets a group consume them, and reads the file that the stopped broker leaves."""
    with tempfile.TemporaryDirectory() as folder:
        async with RocketMQ(store=Path(folder)) as rocketmq:
            producer = await rocketmq.transaction_producer("shop", Decided())
            await producer.create_topic("orders", 1)
            await rocketmq.consumer("credits", "orders", credit)
            for body in ("a book", "a pen"):
                await producer.send_message_in_transaction(Message.of("orders", body))
            await rocketmq.advance(minutes=2)
        print((Path(folder) / "config" / "consumerOffset.json").read_text())


if __name__ == "__main__":
    asyncio.run(main())
