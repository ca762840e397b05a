"""Creates the consumer of orders and cancellations, in a consumer group that is separate from the credit service's."""

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
    """Returns a consumer of orders and cancellations that starts at the first message of each queue and runs on `loop`.

    It calls `listener` on one of `threads` threads. `results` are the group's positions in the inventory database. With
    `grpc_endpoints` it uses Apache's client, which ignores `loop` and `results`.
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
