"""The consumer of orders and cancellations, in a consumer group that is separate from the credit service's."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer, ResultPositions
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

CONSUMER_GROUP: Final = "inventory_service"
_THREADS: Final = 4
"""The number of batches that are stored at the same time. Each is one statement."""
_MAX_BATCH: Final = 256


def order_consumer(
    listener: MessageListener, *, namesrv_addr: str, loop: ClientLoop, results: ResultPositions | None = None
) -> ConsumerThread:
    """Returns a consumer of orders and cancellations that starts at the first message of each queue and runs on `loop`.

    `results` are the group's positions in the inventory database.
    """
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        results=results,
        consume_thread_max=_THREADS,
        consume_message_batch_max_size=_MAX_BATCH,
        pull_batch_size=_MAX_BATCH,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, loop, listener, {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)})
