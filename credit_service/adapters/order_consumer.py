"""The consumer of orders and of their cancellations. It gets messages only after the broker's COMMIT."""

from typing import Final

from order_messages import order_cancelled, order_created
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer, RpcHook
from service_runtime.messaging.apache_consumer import ApacheConsumer, EitherConsumer
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

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
) -> EitherConsumer:
    """Consumes orders and cancellations in batches, starting at each queue's first message, in a bounded pool of threads.

    Calls `listener` in the consumer's threads, with up to `batch_size` messages. `rpc_hook` sees the pulls. It runs on `loop`.
    With `grpc_endpoints` Apache's client takes their place, which has no use for `rpc_hook` and `loop`.
    """
    tags = {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)}
    if grpc_endpoints:
        return ApacheConsumer(
            listener,
            tags,
            group=CONSUMER_GROUP,
            endpoints=grpc_endpoints,
            threads=threads,
            batch_size=batch_size,
            max_reconsume_times=max_reconsume_times,
        )
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        rpc_hook=rpc_hook,
        consume_thread_max=threads,
        consume_message_batch_max_size=batch_size,
        pull_batch_size=batch_size,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        max_reconsume_times=max_reconsume_times,
    )
    return ConsumerThread(consumer, loop, listener, tags)
