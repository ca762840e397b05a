"""Creates the objects of this package, and registers their request handlers."""

from rocketmq_broker.server.parked.dead_letter_processor import DeadLetterProcessor
from rocketmq_broker.server.parked.parked_messages import ParkedMessages
from rocketmq_broker.server.server_context import ServerContext


def build_parked(context: ServerContext) -> ParkedMessages:
    """Creates a ParkedMessages and loads the parked messages from the store.

    The caller must report new messages by calling `on_arrival`.
    """
    parked = ParkedMessages(context.store, context.topic_table)
    parked.load()
    dead_letters = DeadLetterProcessor(
        parked=parked,
        store=context.store,
        group_commit=context.group_commit,
        topic_table=context.topic_table,
        subscription_groups=context.subscription_groups,
        clock=context.clock,
        random=context.random,
    )
    context.dispatcher.add(dead_letters.handlers)
    context.group_commit.listeners.append(parked)
    return parked
