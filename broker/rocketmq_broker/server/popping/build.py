"""Creates the objects of this package, and registers their request handlers."""

from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.server.assignments.assignment_processor import AssignmentProcessor, RouteOf
from rocketmq_broker.server.assignments.request_modes import FILE_NAME, RequestModes
from rocketmq_broker.server.popping.check_points import CheckPoints
from rocketmq_broker.server.popping.deliveries import Deliveries
from rocketmq_broker.server.popping.in_hand import InHand
from rocketmq_broker.server.popping.next_messages import NextMessages
from rocketmq_broker.server.popping.pop_log import PopLog
from rocketmq_broker.server.popping.pop_processor import PopProcessor
from rocketmq_broker.server.popping.popping import Popping
from rocketmq_broker.server.popping.reviver import Reviver
from rocketmq_broker.server.pulling.reading_rules import ReadingRules
from rocketmq_broker.server.pulling.young_queues import YoungQueues, young_queue_bytes
from rocketmq_broker.server.server_context import ServerContext
from rocketmq_broker.store.tables.config_file import ConfigFile


def build_popping(
    context: ServerContext, *, route_of: RouteOf, max_bytes: int, broker_permission: int, max_sleep_s: float
) -> Popping:
    """Creates a Popping and replays the pop log. Raises DamagedStore.

    `route_of` requests a topic's route from the name servers. The caller must report new messages by calling
    `Popping.on_arrival`.
    """
    check_points = CheckPoints(
        PopLog(context.store, context.topic_table), context.offsets, context.offset_commits, clock=context.clock
    )
    check_points.recover()
    reviver = Reviver(
        store=context.store,
        check_points=check_points,
        group_commit=context.group_commit,
        topic_table=context.topic_table,
        subscription_groups=context.subscription_groups,
        statistics=context.statistics,
        clock=context.clock,
    )
    alarm = Alarm()
    next_messages = NextMessages(
        store=context.store,
        check_points=check_points,
        reviver=reviver,
        rules=ReadingRules(context.topic_table, context.subscription_groups, broker_permission),
        young_queues=YoungQueues(context.store, young_queue_bytes()),
        group_commit=context.group_commit,
        statistics=context.statistics,
        max_bytes=max_bytes,
        clock=context.clock,
        random=context.random,
    )
    deliveries = Deliveries(
        check_points=check_points,
        reviver=reviver,
        group_commit=context.group_commit,
        broker_name=context.identity.name,
        clock=context.clock,
        alarm=alarm,
    )
    popping = Popping(
        next_messages=next_messages,
        deliveries=deliveries,
        check_points=check_points,
        in_hand=InHand(check_points.hidden, context.offsets, context.store),
        reviver=reviver,
        message_filters=context.clients.message_filters,
        group_commit=context.group_commit,
        statistics=context.statistics,
        broker_name=context.identity.name,
        clock=context.clock,
        max_sleep_s=max_sleep_s,
        alarm=alarm,
    )
    modes_file = ConfigFile(context.store.config.config_directory / FILE_NAME, context.store.files)
    assignments = AssignmentProcessor(
        modes=RequestModes(modes_file, context.topic_table, context.subscription_groups),
        consumer_groups=context.clients.consumer_groups,
        route_of=route_of,
        tasks=context.tasks,
    )
    pops = PopProcessor(popping, context.clients.message_filters, context.group_commit)
    for processor in (pops, assignments):
        context.dispatcher.add(processor.handlers)
    check_points.on_visible = popping.on_visible
    context.clock.on_step(popping.clock_stepped)
    context.group_commit.listeners.append(check_points)
    context.dispatcher.add_disconnect_listener(popping.waiting.forget)
    return popping
