"""The push consumer of orders and of their cancellations: a second group of the messages that the credit service gets."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

CONSUMER_GROUP: Final = "inventory_service"


def order_consumer(listener: MessageListener, *, namesrv_addr: str, threads: int, loop: ClientLoop) -> ConsumerThread:
    """Consumes orders and cancellations on `loop`, starting at each queue's first message.

    Calls `listener` in `threads` threads of the consumer.
    """
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        consume_thread_max=threads,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, loop, listener, {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)})
