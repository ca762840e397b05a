"""The consumer of orders and of their cancellations: a second group of the messages that the credit service gets."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer
from service_runtime.messaging.apache_consumer import ApacheConsumer, EitherConsumer
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

CONSUMER_GROUP: Final = "inventory_service"


def order_consumer(
    listener: MessageListener, *, namesrv_addr: str, grpc_endpoints: str = "", threads: int, loop: ClientLoop
) -> EitherConsumer:
    """Consumes orders and cancellations on `loop`, starting at each queue's first message.

    Calls `listener` in `threads` threads of the consumer. With `grpc_endpoints` Apache's client takes its place.
    """
    tags = {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)}
    if grpc_endpoints:
        return ApacheConsumer(listener, tags, group=CONSUMER_GROUP, endpoints=grpc_endpoints, threads=threads)
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        consume_thread_max=threads,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, loop, listener, tags)
