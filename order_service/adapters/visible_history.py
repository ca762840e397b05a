"""Reads the witnesses in the newest messages of orders. They reveal at startup that the order database is an old copy.

A witness is the state of the sender's database, which each half message contains. A restored backup lacks the transactions since
the backup. If all these transactions were decided, no check-back reveals that they are missing. But their messages are still in
the topic, each with the witness of its half message.

The message of an order that was paid later contains an old witness. But its transaction was committed before the broker
published it. So the message is evidence of the payment, too.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final

from order_messages import order_created
from order_service.domain.history import PROPERTY, Witness
from rocketmq_broker.client import ClientError, MessageQueue, PullConsumer
from rocketmq_broker.message import MessageExt

GROUP: Final = "order_service_history"
"""The name of the consumer group. It stores no offsets, because each start reads the newest messages."""
MAX_WAIT_S: Final = 3.0
MAX_MESSAGES: Final = 32
"""The maximum number of messages that are read of each queue, which is what one pull returns at most."""

logger = logging.getLogger(__name__)


async def newest_witnesses(namesrv_addr: str) -> list[Witness]:
    """Returns the witnesses in the newest messages of each queue of the topic. Raises ClientError."""
    consumer = PullConsumer(GROUP, namesrv_addr=namesrv_addr)
    await consumer.start()
    try:
        found = await asyncio.gather(*(_newest(consumer, queue) for queue in await consumer.queues(order_created.TOPIC)))
    finally:
        await consumer.shutdown()
    return [_witness_in(message) for messages in found for message in messages if PROPERTY in message.properties]


async def _newest(consumer: PullConsumer, queue: MessageQueue) -> list[MessageExt]:
    """Returns at most MAX_MESSAGES messages from the end of the queue; fewer if the broker fails."""
    messages: list[MessageExt] = []
    try:
        end = await consumer.max_offset(queue)
        offset = max(end - MAX_MESSAGES, 0)
        while offset < end:
            answer = await consumer.pull(queue, offset, max_messages=end - offset)
            messages += answer.messages
            if answer.next_offset <= offset:
                break
            offset = answer.next_offset
    except ClientError as error:
        logger.warning("could not read the newest messages of %s to check the order database: %s", queue, error)
    return messages


def _witness_in(message: MessageExt) -> Witness:
    return replace(Witness.read(message.properties[PROPERTY]), published_id=message.transaction_id or "")
