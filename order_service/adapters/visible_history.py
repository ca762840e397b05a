"""Reads the witnesses in the newest messages of orders: they show an old copy of the order database before a check-back does.

A restored backup lacks the transactions of the lost time. If all of them were decided, no check-back comes; but their messages
are still in the topic, each with the witness of its half message.
"""

import logging
from typing import Final

from order_messages import order_created
from order_service.domain.history import PROPERTY, Witness
from rocketmq_broker.client import ClientError, MessageQueue, PullConsumer

GROUP: Final = "order_service_history"
"""It keeps no offsets: each start looks at the newest messages again."""
MAX_WAIT_S: Final = 3.0

logger = logging.getLogger(__name__)


async def newest_witnesses(namesrv_addr: str) -> list[Witness]:
    """Returns the witness in the newest message of each queue of orders, where it has one. Raises ClientError."""
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
        logger.warning("%s says nothing about the history of the order database: %s", queue, error)
        return None
    history = messages[-1].properties.get(PROPERTY) if messages else None
    return None if history is None else Witness.read(history)
