"""Limits the number of groups that clients may join."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.producer_groups import ProducerGroups

LONGEST_HEARTBEAT: Final = 1024 * 1024
"""Bytes. Two hundred consumer groups with thirty subscriptions each need no more; it is read in some 10 ms."""
MOST_GROUPS_OF_A_CONNECTION: Final = 15_000
"""A client has a handful, a proxy some hundreds. So many are forgotten in some 20 ms when the connection ends."""
MOST_MEMBERSHIPS: Final = 200_000
"""Connections times groups, all together: every 10 s each is asked whether its heartbeats stopped."""


def refuse_long_heartbeat(length: int) -> None:
    """Raises RequestRefused for a heartbeat longer than the limit."""
    if length > LONGEST_HEARTBEAT:
        remark = f"a heartbeat of {length} bytes; {LONGEST_HEARTBEAT} are the most: use several clients for so many groups"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)


def refuse_too_many_groups(
    connection: Connection, data: HeartbeatData, producers: ProducerGroups, consumers: ConsumerGroups
) -> None:
    """Raises RequestRefused if the heartbeat's new groups are too many for the connection, or for all connections together."""
    known_producers, known_consumers = producers.memberships.of(connection), consumers.memberships.of(connection)
    new = len({producer.group_name for producer in data.producer_data_set} - known_producers)
    new += len({consumer.group_name for consumer in data.consumer_data_set} - known_consumers)
    if new and len(known_producers) + len(known_consumers) + new > MOST_GROUPS_OF_A_CONNECTION:
        remark = f"one connection can be in {MOST_GROUPS_OF_A_CONNECTION} groups: use several clients for more"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
    if new and producers.memberships.count + consumers.memberships.count + new > MOST_MEMBERSHIPS:
        remark = f"the clients of this broker are in {MOST_MEMBERSHIPS} groups, each counted for each client: no more can join"
        raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)
