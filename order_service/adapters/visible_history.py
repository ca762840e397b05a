"""Reads the witnesses in the newest messages of orders. They reveal at startup that the order database is an old copy.

A witness is the state of the sender's database, which each half message contains. A restored backup lacks the transactions since
the backup. If all these transactions were decided, no check-back reveals that they are missing. But their messages are still in
the topic, each with the witness of its half message.
"""

import logging
from typing import Final

from order_messages import order_created
from order_service.domain.history import PROPERTY, Witness
from rocketmq_broker.client import ClientError, MessageQueue, PullConsumer

GROUP: Final = "order_service_history"
"""The name of the consumer group. It stores no offsets, because each start reads the newest messages."""
MAX_WAIT_S: Final = 3.0

logger = logging.getLogger(__name__)


async def newest_witnesses(namesrv_addr: str) -> list[Witness]:
    """Returns the witnesses in the newest message of each queue of the topic. Raises ClientError."""
    consumer = PullConsumer(GROUP, namesrv_addr=namesrv_addr)
    await consumer.start()
    try:
        found = [await _newest(consumer, queue) for queue in await consumer.queues(order_created.TOPIC)]
    finally:
        await consumer.shutdown()
    return [witness for witness in found if witness is not None]


async def _newest(consumer: PullConsumer, queue: MessageQueue) -> Witness | None:
    try:
        end = await consumer.max_offset(queue)
        messages = (await consumer.pull(queue, end - 1, max_messages=1)).messages if end else []
    except ClientError as error:
        logger.warning("could not read the newest message of %s to check the order database: %s", queue, error)
        return None
    history = messages[-1].properties.get(PROPERTY) if messages else None
    return None if history is None else Witness.read(history)
