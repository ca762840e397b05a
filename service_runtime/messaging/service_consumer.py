"""The consumer of a service: by this project's client, or by Apache's where the settings name its endpoints."""

from collections.abc import Mapping

from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer, ResultPositions, RpcHook
from service_runtime.messaging.apache_consumer import MAX_RECONSUME_TIMES, ApacheConsumer
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

ServiceConsumer = ConsumerThread | ApacheConsumer
"""A consumer of a service, by this project's client or by Apache's."""


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
    """Consumes messages that have a tag of these topics, starting at each queue's first message.

    Calls `listener` in `threads` threads, with up to `batch_size` messages. It runs on `loop`; `rpc_hook` sees the pulls, and
    `results` has the positions in the database of the listener's results.
    With `grpc_endpoints` Apache's client takes its place, which pulls batch by batch, has no offsets that `results` could
    save, and no use for `rpc_hook` and `loop`.
    Without `max_reconsume_times` the client's own limit counts.
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
