"""Creates the request processors of this package, and registers their handlers."""

from rocketmq_broker.server.pulling.held_pulls import HeldPulls
from rocketmq_broker.server.pulling.offset_processor import OffsetProcessor
from rocketmq_broker.server.pulling.pull_processor import PullProcessor
from rocketmq_broker.server.pulling.query_processor import QueryProcessor
from rocketmq_broker.server.pulling.young_queues import young_queue_bytes
from rocketmq_broker.server.server_context import ServerContext


def build_pulling(
    context: ServerContext, *, max_messages: int, max_bytes: int, short_polling_ms: int | None, broker_permission: int
) -> PullProcessor:
    """Creates the request processors, and registers their handlers. Returns the processor of pulls.

    `short_polling_ms` is None for long polling. The caller must report new messages by calling `PullProcessor.on_arrival`.
    """
    held_pulls = HeldPulls()
    pull = PullProcessor(
        store=context.store,
        topic_table=context.topic_table,
        subscription_groups=context.subscription_groups,
        consumer_groups=context.clients.consumer_groups,
        offset_commits=context.offset_commits,
        held_pulls=held_pulls,
        message_filters=context.clients.message_filters,
        statistics=context.statistics,
        max_messages=max_messages,
        max_bytes=max_bytes,
        short_polling_ms=short_polling_ms,
        broker_permission=broker_permission,
        clock=context.clock.steady_ms,
    )
    offsets = OffsetProcessor(
        store=context.store,
        offsets=context.offsets,
        offset_commits=context.offset_commits,
        young_queue_bytes=young_queue_bytes(),
    )
    query = QueryProcessor(store=context.store, tasks=context.tasks, steady_ns=context.clock.steady_ns)
    for processor in (pull, offsets, query):
        context.dispatcher.add(processor.handlers)
    context.dispatcher.add_disconnect_listener(held_pulls.forget)
    return pull
