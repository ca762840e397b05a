"""The queues of a topic's route.

Corresponds to topicRouteData2TopicPublishInfo and topicRouteData2TopicSubscribeInfo of RocketMQ's MQClientInstance.
"""

from typing import Final

from rocketmq_broker.client.errors import NoRoute
from rocketmq_broker.message import MessageQueue, permissions
from rocketmq_broker.protocol.bodies.route import MASTER_ID, TopicRouteData

MAX_QUEUES: Final = 65_535
"""The maximum number of queues of a topic at one broker. The limit protects the client's memory from a faulty name server."""
MAX_QUEUES_OF_A_TOPIC: Final = 4 * MAX_QUEUES
"""The maximum number of queues of a topic at all brokers."""


def check_queue_counts(topic: str, route: TopicRouteData) -> None:
    """Raises NoRoute if the route has too many queues."""
    counts = [max(data.read_queue_nums, data.write_queue_nums) for data in route.queue_datas]
    counts += [_count(topic, part) for part in filter(None, (route.order_topic_conf or "").split(";"))]
    if counts and (max(counts) > MAX_QUEUES or sum(counts) > MAX_QUEUES_OF_A_TOPIC):
        raise NoRoute(
            f"too many queues in the route of topic {topic}: {sum(counts)} in total (at most {MAX_QUEUES_OF_A_TOPIC}), "
            f"{max(counts)} at one broker (at most {MAX_QUEUES}); correct the topic's settings"
        )


def publish_queues(topic: str, route: TopicRouteData, *, at_most: int | None = None) -> list[MessageQueue]:
    """Returns the queues for sending, which are the writable queues of the brokers whose master is up.

    `at_most` limits the number of queues at each broker, for a topic that will be created by its first message.
    """
    if route.order_topic_conf:
        return _ordered_queues(topic, route.order_topic_conf)
    with_master = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    queues = []
    for data in sorted(route.queue_datas, key=lambda data: data.broker_name):
        if permissions.is_writeable(data.perm) and data.broker_name in with_master:
            count = data.write_queue_nums if at_most is None else min(at_most, data.read_queue_nums)
            queues += [MessageQueue(topic, data.broker_name, queue_id) for queue_id in range(count)]
    return queues


def subscribe_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Returns the readable queues."""
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if permissions.is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    )


def _count(topic: str, part: str) -> int:
    count = part.rpartition(":")[2]
    if not count.isdecimal():
        raise NoRoute(f"ORDER_TOPIC_CONFIG of topic {topic} must have the form BROKER:COUNT;BROKER:COUNT, not {part!r}")
    return int(count)


def _ordered_queues(topic: str, order_topic_conf: str) -> list[MessageQueue]:
    """Returns the queues that a string such as `broker-a:4;broker-b:4` lists.

    A topic in global order keeps these queues even while a broker is down.
    """
    queues = []
    for part in filter(None, order_topic_conf.split(";")):
        broker_name, _, count = part.rpartition(":")
        queues += [MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(count))]
    return queues
