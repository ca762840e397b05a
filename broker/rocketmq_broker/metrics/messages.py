"""Metrics of messages and clients."""

from collections import Counter
from collections.abc import Iterator
from heapq import nlargest

from prometheus_client import Metric

from rocketmq_broker.message import topics
from rocketmq_broker.metrics.families import Families, Labels, boolean
from rocketmq_broker.metrics.sources import MetricsSources, read_consistently
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.statistics.traffic import Traffic

_REMOTING = "remoting"
MAX_LAGS = 10_000
_SYSTEM_GROUP = "CID_RMQ_SYS_"


def message_metrics(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    """Yields metrics of traffic, dead letters, consumer lag and popped messages."""
    yield from _received(families, sources)
    yield from _pulled(families, sources)
    yield from _dead_letters(families, sources)
    yield from _lag(families, sources)
    yield _inflight(families, sources)
    yield _pops_refused(families, sources)


def client_metrics(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    """Yields metrics of connections, producers, consumers, topics and consumer groups."""
    producers = read_consistently(sources.producer_groups.all_channels)
    consumers = read_consistently(sources.consumer_groups.all_groups)
    by_producer = Counter(_client(channel) for channels in producers.values() for channel in channels)
    by_consumer: Counter[Labels] = Counter()
    for group in consumers:
        mode = group.consume_type.name if group.consume_type is not None else ""
        for channel in read_consistently(lambda group=group: list(group.channels.values())):  # type: ignore[misc]
            by_consumer[(group.name, mode.removeprefix("CONSUME_").removesuffix("LY").lower(), *_client(channel))] += 1
    yield families.gauge("rocketmq_connections", "Open connections of clients and other peers", sources.count_connections())
    yield families.gauges(
        "rocketmq_broker_registered",
        "1, or 0 while the broker is not registered with the name server, so that its clients do not find the broker",
        ("name_server",),
        [((address,), is_registered) for address, is_registered in sources.registered_with().items()],
    )
    yield families.gauges(
        "rocketmq_producer_connections", "Producers online", ("language", "version", "protocol_type"), by_producer.items()
    )
    yield families.gauges(
        "rocketmq_consumer_connections",
        "Consumers online",
        ("consumer_group", "consume_mode", "language", "version", "protocol_type"),
        by_consumer.items(),
    )
    differing = read_consistently(lambda: [group.name for group in consumers if group.is_divided])
    yield families.gauges(
        "rocketmq_consumer_subscriptions_differ",
        "1 for a group whose members subscribe to different messages, so that some messages are not consumed",
        ("consumer_group",),
        [((group,), 1) for group in differing],
    )
    yield families.gauge("rocketmq_topic_number", "Topics", read_consistently(lambda: len(list(sources.topic_table))))
    yield families.gauge(
        "rocketmq_consumer_group_number",
        "Subscription groups",
        read_consistently(lambda: len(list(sources.subscription_groups.groups))),
    )


def _received(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    traffic = sources.statistics.traffic
    received: list[tuple[Labels, Traffic]] = []
    for message_type, counts in (
        ("normal", traffic.normal),
        ("delay", traffic.delayed),
        ("transaction", traffic.transactional),
    ):
        for topic, one in read_consistently(lambda counts=counts: list(counts.items())):  # type: ignore[misc]
            name = topic.decode(errors="replace")
            if not _is_retry(name):
                received.append(((name, message_type, boolean(topics.is_system_topic(name))), one))
    names = ("topic", "message_type", "is_system")
    messages = [(labels, one.messages) for labels, one in received]
    sizes = [(labels, one.size) for labels, one in received]
    yield families.counters("rocketmq_messages_in_total", "Messages that producers sent", names, messages)
    yield families.counters(
        "rocketmq_throughput_in_total", "Bytes of messages that producers sent, in the commit log", names, sizes
    )


def _pulled(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    pulled: list[tuple[Labels, Traffic]] = []
    for (topic, group), one in read_consistently(lambda: list(sources.statistics.traffic.pulled.items())):
        name = topic.decode(errors="replace")
        if not _is_retry(name):
            pulled.append(((name, group, boolean(topics.is_system_topic(name) or _is_system_group(group))), one))
    names = ("topic", "consumer_group", "is_system")
    messages = [(labels, one.messages) for labels, one in pulled]
    sizes = [(labels, one.size) for labels, one in pulled]
    yield families.counters("rocketmq_messages_out_total", "Messages that consumer groups pulled", names, messages)
    yield families.counters("rocketmq_throughput_out_total", "Bytes of messages that consumer groups pulled", names, sizes)


def _dead_letters(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    values: list[tuple[Labels, float]] = []
    for topic, messages in read_consistently(sources.statistics.flows.arrived).items():
        name = topic.decode(errors="replace")
        if name.startswith(topics.DEAD_LETTER_PREFIX):
            group = name.removeprefix(topics.DEAD_LETTER_PREFIX)
            values.append(((group, name, boolean(_is_system_group(group))), messages))
    names = ("consumer_group", "topic", "is_system")
    yield families.counters("rocketmq_send_to_dlq_messages_total", "Messages that became dead letters", names, values)
    untreated = [((group,), messages) for group, messages in read_consistently(sources.parked.dead_letters).items()]
    yield families.gauges(
        "rocketmq_dead_letters", "Dead letters that have not been retried or dismissed", ("consumer_group",), untreated
    )


def _lag(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    values: list[tuple[Labels, float]] = []
    for name, offsets in read_consistently(sources.consumer_offsets.as_json).items():
        topic, _, group = name.partition("@")
        if group == topics.TRANSACTION_CONSUMER_GROUP:
            continue
        ends = {queue_id: sources.store.max_offset(topic.encode(), queue_id) for queue_id in offsets}
        lag = sum(max(0, ends[queue_id] - offset) for queue_id, offset in offsets.items())
        is_system = topics.is_system_topic(topic) or _is_system_group(group)
        values.append(((group, topic, boolean(_is_retry(topic)), boolean(is_system)), lag))
    # Exports only the largest lags, because all of them could take megabytes in a scrape.
    left_out = max(len(values) - MAX_LAGS, 0)
    if left_out:
        values = sorted(values, key=lambda value: value[1], reverse=True)[:MAX_LAGS]
    names = ("consumer_group", "topic", "is_retry", "is_system")
    text = "Messages that a group has not consumed yet"
    yield families.gauges("rocketmq_consumer_lag_messages", text, names, values)
    text = f"Lags that are not exported, because {MAX_LAGS} others are larger"
    yield families.gauge("rocketmq_consumer_lag_left_out", text, left_out)


def _inflight(families: Families, sources: MetricsSources) -> Metric:
    """Returns the number of popped messages without acknowledgement, for each group and topic.

    A retried message counts for its original topic (ConsumerLagCalculator).
    """
    values: list[tuple[Labels, float]] = []
    for (group, queue_topic), messages in read_consistently(sources.in_hand.counts).items():
        topic = queue_topic.removeprefix(topics.pop_retry_topic(group, ""))
        is_system = topics.is_system_topic(topic) or _is_system_group(group)
        values.append(((group, topic, boolean(_is_retry(queue_topic)), boolean(is_system)), messages))
    names = ("consumer_group", "topic", "is_retry", "is_system")
    text = f"Messages that a group popped and has not acknowledged yet, for the {MAX_LAGS} largest numbers"
    largest = nlargest(MAX_LAGS, values, key=lambda value: value[1])
    return families.gauges("rocketmq_consumer_inflight_messages", text, names, largest)


def _pops_refused(families: Families, sources: MetricsSources) -> Metric:
    refused = read_consistently(lambda: list(sources.statistics.traffic.pops_refused.items()))
    values = [((group, topic.decode(errors="replace")), count) for (topic, group), count in refused]
    names = ("consumer_group", "topic")
    text = "Pops refused because too many messages are in hand (see rocketmq-admin doctor)"
    return families.counters("rocketmq_pops_refused_total", text, names, values)


def _client(channel: ClientChannel) -> Labels:
    """Returns the client's language, version number and protocol. RocketMQ's number for version 4.9.7 is 407."""
    return channel.language.lower(), str(channel.version), _REMOTING


def _is_retry(topic: str) -> bool:
    return topic.startswith((topics.RETRY_PREFIX, topics.DEAD_LETTER_PREFIX))


def _is_system_group(group: str) -> bool:
    return group.upper().startswith(_SYSTEM_GROUP)
