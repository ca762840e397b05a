"""What a request needs: which permission on which topics and groups, or an admin's account (RocketMQ's PlainAccessValidator).

| request | needs | in Apache 4.9.7 |
| --- | --- | --- |
| SEND_MESSAGE, SEND_MESSAGE_V2 | PUB of the topic; SUB of the group if it is a retry topic | as here, of another field's group |
| SEND_BATCH_MESSAGE | as SEND_MESSAGE | nothing |
| SEND_REPLY_MESSAGE, its V2 | PUB of the topic, unless it is a cluster's reply topic | nothing |
| END_TRANSACTION | PUB of the half message's real topic | nothing |
| PULL_MESSAGE | SUB of topic and group | as here |
| LITE_PULL_MESSAGE | as PULL_MESSAGE | not known |
| QUERY_MESSAGE | SUB of the topic | as here |
| VIEW_MESSAGE_BY_ID | SUB of the message's topic | nothing |
| CONSUMER_SEND_MSG_BACK, GET_CONSUMER_LIST_BY_GROUP | SUB of the group | as here |
| UNREGISTER_CLIENT | SUB of the consumer group | as here |
| HEART_BEAT | SUB of each consumer group and of each topic it subscribes to | as here |
| UPDATE_CONSUMER_OFFSET | SUB of topic and group | as here |
| LOCK_BATCH_MQ, UNLOCK_BATCH_MQ | SUB of the group | nothing |
| INVOKE_BROKER_TO_RESET_OFFSET | SUB of topic and group | nothing |
| CLONE_GROUP_OFFSET | SUB of both groups | nothing |
| CONSUME_MESSAGE_DIRECTLY | SUB of the group | nothing |
| what changes topics, groups or settings | an admin | as here |
| what changes or shows accounts | an admin | nothing |
| what deletes files or queues | an admin | nothing |
| RESUME_CHECK_HALF_MESSAGE, the requests of `broker.admin` | an admin | nothing, not known |
| COUNT_PARKED_MESSAGES: figures for the health of producers | an account | not known |
| any other, which only tells figures or settings | an account | as here |

A topic that is the broker's own, and a group CID_RMQ_SYS_*, need an admin wherever the table names a topic or a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from broker.acl.permission import Permission
from broker.message import topics
from broker.protocol.bodies import LockBatchRequestBody
from broker.protocol.codes import AdminRequestCode, RequestCode
from broker.protocol.command import RemotingCommand
from broker.protocol.heartbeat import HeartbeatData

Resources = dict[str, Permission]
"""By topic; a group stands under its retry topic."""


@dataclass(frozen=True, slots=True)
class StoredUnder:
    """The topic of a stored message, and the one that it is for: a half message waits in a topic of the broker's own."""

    topic: str
    real_topic: str


TopicAt = Callable[[int], StoredUnder | None]
"""The topics of the message at a commit log offset; None where there is none."""

ADMIN_CODES: Final = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        RequestCode.DELETE_ACL_CONFIG,
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG,
        RequestCode.RESUME_CHECK_HALF_MESSAGE,
        RequestCode.TRIGGER_DELETE_FILES,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.CLEAN_UNUSED_TOPIC,
        *(set(AdminRequestCode) - {AdminRequestCode.COUNT_PARKED_MESSAGES}),
    }
)
ACCOUNT_CODES: Final = frozenset(
    {
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.GET_ALL_TOPIC_CONFIG,
        RequestCode.GET_BROKER_CONFIG,
        RequestCode.GET_BROKER_RUNTIME_INFO,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.GET_EARLIEST_MSG_STORETIME,
        RequestCode.GET_ALL_CONSUMER_OFFSET,
        RequestCode.GET_ALL_DELAY_OFFSET,
        RequestCode.CHECK_CLIENT_CONFIG,
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_TOPIC_STATS_INFO,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_PRODUCER_CONNECTION_LIST,
        RequestCode.GET_CONSUME_STATS,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
        RequestCode.QUERY_CONSUME_TIME_SPAN,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.QUERY_CORRECTION_OFFSET,
        RequestCode.VIEW_BROKER_STATS_DATA,
        RequestCode.GET_BROKER_CONSUME_STATS,
        RequestCode.QUERY_CONSUME_QUEUE,
        RequestCode.GET_ALL_PRODUCER_INFO,
        RequestCode.GET_TOPIC_CONFIG,
        AdminRequestCode.COUNT_PARKED_MESSAGES,
    }
)
"""What every account may ask. A request that the broker answers stands here, in ADMIN_CODES or in the table of needs: a test
makes sure that somebody decided about each."""

_LONGEST_OFFSET: Final = 19
"""Digits of the greatest offset."""
_SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a request needs beside an account."""

    resources: Resources
    is_admin_needed: bool


def needs_of(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Needs:
    """What the request with these extension fields needs. Raises ProtocolError if its body or a number cannot be read."""
    find = FINDERS.get(command.code)
    resources = find(command, fields, topic_at) if find is not None else {}
    return Needs(resources, command.code in ADMIN_CODES or any(map(_is_reserved, resources)))


def _is_reserved(resource: str) -> bool:
    if resource.startswith(topics.RETRY_PREFIX):
        return resource.startswith(topics.RETRY_PREFIX + _SYSTEM_GROUP_PREFIX)
    return resource in topics.NOT_ALLOWED_SEND_TOPICS


def _topic(topic: str | None, permission: Permission) -> Resources:
    """A retry topic is for its group's consumers: they send messages back to it."""
    if not topic:
        return {}
    return {topic: Permission.SUB if topic.startswith(topics.RETRY_PREFIX) else permission}


def _groups(groups: Iterable[str | None]) -> Resources:
    return {topics.retry_topic(group): Permission.SUB for group in groups if group}


def _send(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return _topic(fields.get("topic"), Permission.PUB)


def _send_v2(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return _topic(fields.get("b"), Permission.PUB)


def _reply(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    topic = fields.get("topic" if command.code == RequestCode.SEND_REPLY_MESSAGE else "b", "")
    return {} if topic.endswith(topics.REPLY_TOPIC_SUFFIX) else _topic(topic, Permission.PUB)


def _end_transaction(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    half = _message_at(fields.get("commitLogOffset"), topic_at)
    return {} if half is None else _topic(half.real_topic, Permission.PUB)


def _view(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    message = _message_at(fields.get("offset"), topic_at)
    return {} if message is None else _topic(message.topic, Permission.SUB)


def _pull(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return {**_topic(fields.get("topic"), Permission.SUB), **_groups([fields.get("consumerGroup")])}


def _query(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return _topic(fields.get("topic"), Permission.SUB)


def _group(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return _groups([fields.get("group")])


def _consumer_group(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return _groups([fields.get("consumerGroup")])


def _reset_offset(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return {**_topic(fields.get("topic"), Permission.SUB), **_groups([fields.get("group")])}


def _clone_offsets(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return _groups([fields.get("srcGroup"), fields.get("destGroup")])


def _heartbeat(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    needed: Resources = {}
    for consumer in HeartbeatData.decode(command.body).consumer_data_set:
        needed |= _groups([consumer.group_name])
        for subscription in consumer.subscription_data_set:
            needed |= _topic(subscription.topic, Permission.SUB)
    return needed


def _locks(command: RemotingCommand, fields: dict[str, str], topic_at: TopicAt) -> Resources:
    return _groups([LockBatchRequestBody.decode(command.body).consumer_group])


def _message_at(commit_log_offset: str | None, topic_at: TopicAt) -> StoredUnder | None:
    """What is no offset, the processor refuses."""
    if commit_log_offset is None or not commit_log_offset.isdecimal() or len(commit_log_offset) > _LONGEST_OFFSET:
        return None
    return topic_at(int(commit_log_offset))


_Finder = Callable[[RemotingCommand, dict[str, str], TopicAt], Resources]

FINDERS: Final[dict[int, _Finder]] = {
    RequestCode.SEND_MESSAGE: _send,
    RequestCode.SEND_MESSAGE_V2: _send_v2,
    RequestCode.SEND_BATCH_MESSAGE: _send_v2,
    RequestCode.SEND_REPLY_MESSAGE: _reply,
    RequestCode.SEND_REPLY_MESSAGE_V2: _reply,
    RequestCode.END_TRANSACTION: _end_transaction,
    RequestCode.PULL_MESSAGE: _pull,
    RequestCode.LITE_PULL_MESSAGE: _pull,
    RequestCode.QUERY_MESSAGE: _query,
    RequestCode.VIEW_MESSAGE_BY_ID: _view,
    RequestCode.CONSUMER_SEND_MSG_BACK: _group,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _consumer_group,
    RequestCode.UNREGISTER_CLIENT: _consumer_group,
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.UPDATE_CONSUMER_OFFSET: _pull,
    RequestCode.LOCK_BATCH_MQ: _locks,
    RequestCode.UNLOCK_BATCH_MQ: _locks,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: _reset_offset,
    RequestCode.CLONE_GROUP_OFFSET: _clone_offsets,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _consumer_group,
}
"""By request code: the topics and groups that a request names, and what it needs of them."""
