"""The consumer of compensating messages: shortages, and orders that cannot be credited."""

from typing import Final

from order_messages import credit_refused, stock_short
from rocketmq_broker.client import MessageListener
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.service_consumer import ServiceConsumer, service_consumer

CONSUMER_GROUP: Final = "order_service"
_THREADS: Final = 2


def compensation_consumer(
    listener: MessageListener, *, namesrv_addr: str, grpc_endpoints: str = "", loop: ClientLoop
) -> ServiceConsumer:
    """Consumes each queue on `loop`, starting at its first message. Calls `listener` in a few threads of the consumer.

    With `grpc_endpoints` Apache's client takes its place.
    """
    return service_consumer(
        listener,
        {kind.TOPIC: kind.TAG for kind in (stock_short, credit_refused)},
        group=CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        grpc_endpoints=grpc_endpoints,
        threads=_THREADS,
        loop=loop,
    )
