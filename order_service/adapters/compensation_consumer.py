"""The consumer of compensating messages: shortages, and orders that cannot be credited."""

from typing import Final

from order_messages import credit_refused, stock_short
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer
from service_runtime.messaging.apache_consumer import ApacheConsumer, EitherConsumer
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

CONSUMER_GROUP: Final = "order_service"
_THREADS: Final = 2


def compensation_consumer(
    listener: MessageListener, *, namesrv_addr: str, grpc_endpoints: str = "", loop: ClientLoop
) -> EitherConsumer:
    """Consumes each queue on `loop`, starting at its first message. Calls `listener` in a few threads of the consumer.

    With `grpc_endpoints` Apache's client takes its place.
    """
    tags = {kind.TOPIC: kind.TAG for kind in (stock_short, credit_refused)}
    if grpc_endpoints:
        return ApacheConsumer(listener, tags, group=CONSUMER_GROUP, endpoints=grpc_endpoints, threads=_THREADS)
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        consume_thread_max=_THREADS,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, loop, listener, tags)
