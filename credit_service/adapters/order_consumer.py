"""The consumer of orders and cancellations. It receives only messages of committed transactions."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer, ResultPositions, RpcHook
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

CONSUMER_GROUP: Final = "credit_service"


def order_consumer(
    listener: MessageListener,
    *,
    namesrv_addr: str,
    threads: int,
    batch_size: int,
    max_reconsume_times: int,
    loop: ClientLoop,
    rpc_hook: RpcHook | None = None,
    results: ResultPositions | None = None,
) -> ConsumerThread:
    """Returns a consumer of orders and cancellations that starts at the first message of each queue and runs on `loop`.

    It calls `listener` with up to `batch_size` messages on one of `threads` threads. `rpc_hook` is called for each pull.
    `results` are the group's positions in the credit database.
    """
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        rpc_hook=rpc_hook,
        results=results,
        consume_thread_max=threads,
        consume_message_batch_max_size=batch_size,
        pull_batch_size=batch_size,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        max_reconsume_times=max_reconsume_times,
    )
    return ConsumerThread(consumer, loop, listener, {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)})
