"""Creates the consumer of a service, with this project's client or with Apache's."""

from collections.abc import Mapping

from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer, ResultPositions, RpcHook
from service_runtime.messaging.apache_consumer import MAX_RECONSUME_TIMES, ApacheConsumer
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

ServiceConsumer = ConsumerThread | ApacheConsumer
"""A consumer that uses this project's client or Apache's client."""


def service_consumer(
    listener: MessageListener,
    tags: Mapping[str, str],
    *,
    group: str,
    namesrv_addr: str,
    grpc_endpoints: str = "",
    threads: int,
    batch_size: int = 1,
    pull_batch_size: int = 32,
    max_reconsume_times: int | None = None,
    loop: ClientLoop,
    rpc_hook: RpcHook | None = None,
    results: ResultPositions | None = None,
) -> ServiceConsumer:
    """Returns a consumer of messages with one tag of each topic, starting at the first message of each queue.

    It calls `listener` on `threads` threads with up to `batch_size` messages. It runs on `loop`. `rpc_hook` is called for each
    pull. `results` are the positions in the database of the listener's results.
    With `grpc_endpoints` it uses Apache's client, which ignores `results`, `rpc_hook` and `loop`.
    The default of `max_reconsume_times` is the client's.
    """
    if grpc_endpoints:
        return ApacheConsumer(
            listener,
            tags,
            group=group,
            endpoints=grpc_endpoints,
            threads=threads,
            batch_size=batch_size,
            max_reconsume_times=MAX_RECONSUME_TIMES if max_reconsume_times is None else max_reconsume_times,
        )
    consumer = PushConsumer(
        group,
        namesrv_addr=namesrv_addr,
        rpc_hook=rpc_hook,
        results=results,
        consume_thread_max=threads,
        consume_message_batch_max_size=batch_size,
        pull_batch_size=pull_batch_size,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        max_reconsume_times=max_reconsume_times,
    )
    return ConsumerThread(consumer, loop, listener, tags)
