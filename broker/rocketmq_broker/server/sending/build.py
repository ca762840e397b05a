"""Creates the request processors of this package, and registers their handlers."""

from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.sending.reply_processor import ReplyProcessor
from rocketmq_broker.server.sending.send_back_processor import SendBackProcessor
from rocketmq_broker.server.sending.send_processor import HalfMessageStore, SendDestination, SendProcessor
from rocketmq_broker.server.server_context import ServerContext


def build_sending(
    context: ServerContext,
    *,
    half_messages: HalfMessageStore,
    replies: Tasks,
    region_id: str,
    is_trace_on: bool,
    is_storing_replies: bool,
) -> None:
    """Creates the request processors, and registers their handlers.

    `half_messages` stores messages that begin a transaction. `replies` runs the tasks that push replies.
    """
    destination = SendDestination(context.topic_table, context.subscription_groups, context.random)
    send = SendProcessor(
        identity=context.identity,
        store=context.store,
        group_commit=context.group_commit,
        destination=destination,
        half_messages=half_messages,
        region_id=region_id,
        is_trace_on=is_trace_on,
        statistics=context.statistics,
        delay_levels_ms=context.store.config.delay_levels_ms,
        clock=context.clock,
    )
    send_back = SendBackProcessor(
        store=context.store,
        group_commit=context.group_commit,
        topic_table=context.topic_table,
        subscription_groups=context.subscription_groups,
        statistics=context.statistics,
        consumer_groups=context.clients.consumer_groups,
        offsets=context.offsets,
        highest_delay_level=len(context.store.config.delay_levels_ms),
        clock=context.clock,
        random=context.random,
    )
    reply = ReplyProcessor(
        identity=context.identity,
        store=context.store,
        group_commit=context.group_commit,
        destination=destination,
        producers=context.clients.producer_groups,
        region_id=region_id,
        is_trace_on=is_trace_on,
        is_storing=is_storing_replies,
        statistics=context.statistics,
        tasks=replies,
        clock=context.clock,
    )
    for processor in (send, send_back, reply):
        context.dispatcher.add(processor.handlers)
