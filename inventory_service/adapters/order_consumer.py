"""The push consumer of orders and of their cancellations: a second group of the messages that the credit service gets."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer
from service_runtime.messaging.consumer_thread import ConsumerThread

CONSUMER_GROUP: Final = "inventory_service"


def order_consumer(listener: MessageListener, *, namesrv_addr: str, threads: int) -> ConsumerThread:
    """Consumes orders and cancellations, starting at each queue's first message. Calls `listener` in `threads` threads."""
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        consume_thread_max=threads,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, listener, {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)})
