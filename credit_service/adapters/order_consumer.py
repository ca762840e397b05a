"""The consumer of orders and cancellations. It receives only messages of committed transactions."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import MessageListener, ResultPositions, RpcHook
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.service_consumer import ServiceConsumer, service_consumer

CONSUMER_GROUP: Final = "credit_service"


def order_consumer(
    listener: MessageListener,
    *,
    namesrv_addr: str,
    grpc_endpoints: str = "",
    threads: int,
    batch_size: int,
    max_reconsume_times: int,
    loop: ClientLoop,
    rpc_hook: RpcHook | None = None,
    results: ResultPositions | None = None,
) -> ServiceConsumer:
    """Returns a consumer of orders and cancellations that starts at the first message of each queue and runs on `loop`.

    It calls `listener` with up to `batch_size` messages on one of `threads` threads. `rpc_hook` is called for each pull.
    `results` are the group's positions in the credit database. With `grpc_endpoints` it uses Apache's client, which ignores
    `rpc_hook`, `loop` and `results`.
    """
    return service_consumer(
        listener,
        {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)},
        group=CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        grpc_endpoints=grpc_endpoints,
        threads=threads,
        batch_size=batch_size,
        pull_batch_size=batch_size,
        max_reconsume_times=max_reconsume_times,
        loop=loop,
        rpc_hook=rpc_hook,
        results=results,
    )
