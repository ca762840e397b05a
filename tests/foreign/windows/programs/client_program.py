"""A client for any operating system. Prints the texts of the messages that it sent or consumed, sorted.

python client_program.py NAME_SERVER GROUP send TEXT...
python client_program.py NAME_SERVER GROUP consume COUNT
"""

import asyncio
import os
import sys

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    LocalTransactionState,
    Message,
    MessageExt,
    PushConsumer,
    TransactionProducer,
)

TOPIC = os.environ.get("TOPIC", "orders")


class Paid:
    """A listener that commits every order."""

    def execute_local_transaction(self, message: Message, order: object) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


async def send(name_server: str, group: str, texts: list[str]) -> list[str]:
    """Sends each text in a transaction."""
    async with TransactionProducer(group, Paid(), namesrv_addr=name_server) as producer:
        for text in texts:
            await producer.send_message_in_transaction(Message.of(TOPIC, text, keys=[text]))
    return texts


async def consume(name_server: str, group: str, count: int) -> list[str]:
    """Consumes `count` different messages, starting with the first message of the topic."""
    consumer = PushConsumer(group, namesrv_addr=name_server, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    texts: set[str] = set()
    enough = asyncio.Event()

    @consumer.consumes(TOPIC)
    async def collect(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        texts.update(message.text for message in messages)
        if len(texts) >= count:
            enough.set()
        return ConsumeStatus.CONSUME_SUCCESS

    async with consumer, asyncio.timeout(60):
        await enough.wait()
    return list(texts)


if __name__ == "__main__":
    server, group, action, *rest = sys.argv[1:]
    done = asyncio.run(send(server, group, rest) if action == "send" else consume(server, group, int(rest[0])))
    print(*sorted(done))
