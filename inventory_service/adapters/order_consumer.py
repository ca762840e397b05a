"""The consumer of orders and of their cancellations: a second group of the messages that the credit service gets."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import MessageListener, ResultPositions
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.service_consumer import ServiceConsumer, service_consumer

CONSUMER_GROUP: Final = "inventory_service"


def order_consumer(
    listener: MessageListener,
    *,
    namesrv_addr: str,
    grpc_endpoints: str = "",
    threads: int,
    loop: ClientLoop,
    results: ResultPositions | None = None,
) -> ServiceConsumer:
    """Consumes orders and cancellations on `loop`, starting at each queue's first message.

    Calls `listener` in `threads` threads of the consumer. With `grpc_endpoints` Apache's client takes its place,
    which has no use for `loop`, and for `results`, the positions of the stock room.
    """
    return service_consumer(
        listener,
        {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)},
        group=CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        grpc_endpoints=grpc_endpoints,
        threads=threads,
        loop=loop,
        results=results,
    )
