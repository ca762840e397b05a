"""Creates the consumer of compensating messages, which report shortages and refused credits."""

from typing import Final

from order_messages import credit_refused, stock_short
from rocketmq_broker.client import ConsumeFromWhere, MessageListener, PushConsumer
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

CONSUMER_GROUP: Final = "order_service"
_THREADS: Final = 2


def compensation_consumer(listener: MessageListener, *, namesrv_addr: str, loop: ClientLoop) -> ConsumerThread:
    """Returns a consumer that runs on `loop` and starts at the first message of each queue.

    It calls `listener` on a few threads.
    """
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        consume_thread_max=_THREADS,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, loop, listener, {kind.TOPIC: kind.TAG for kind in (stock_short, credit_refused)})
