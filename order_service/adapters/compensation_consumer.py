"""Creates the consumer of compensating messages, which report shortages and refused credits."""

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
    """Returns a consumer that runs on `loop` and starts at the first message of each queue.

    It calls `listener` on a few threads. With `grpc_endpoints` it uses Apache's client.
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
