"""Determines the permissions that a request needs on topics and groups (RocketMQ's PlainAccessValidator).

The section "What each request needs" of docs/access.md contains a table of these permissions and compares it with Apache 4.9.7.
tests/unit/acl/test_needs_page.py checks that the table matches this module. A request that names a system topic, or a group
CID_RMQ_SYS_*, needs an admin account. An auditor may read these topics and groups.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from rocketmq_broker.acl.permission import Permission
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.bodies.group import LockBatchRequestBody
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData
from rocketmq_broker.protocol.bodies.pop import BatchAckMessageRequestBody, QueryAssignmentRequestBody
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.group import (
    CloneGroupOffsetRequestHeader,
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
    UnregisterClientRequestHeader,
)
from rocketmq_broker.protocol.headers.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    NotificationRequestHeader,
    PopMessageRequestHeader,
)
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader, UpdateConsumerOffsetRequestHeader
from rocketmq_broker.protocol.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    SendHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from rocketmq_broker.protocol.headers.topic import QueryMessageRequestHeader, ViewMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader

Resources = dict[str, Permission]
"""Maps topics to permissions. A group's permission is stored under its retry topic."""


@dataclass(frozen=True, slots=True)
class StoredUnder:
    """The topic that a message is stored in, and its real topic. They differ for a half message."""

    topic: str
    real_topic: str


TopicAt = Callable[[int], StoredUnder | None]
"""A function that returns the topics of the message at a commit log offset; None if there is no message."""

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
        RequestCode.SET_MESSAGE_REQUEST_MODE,
        RequestCode.TRIGGER_DELETE_FILES,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.CLEAN_UNUSED_TOPIC,
        # Handled by a name server in the broker's process:
        RequestCode.PUT_KV_CONFIG,
        RequestCode.DELETE_KV_CONFIG,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
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
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
        RequestCode.QUERY_CONSUME_TIME_SPAN,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
        RequestCode.QUERY_CORRECTION_OFFSET,
        RequestCode.VIEW_BROKER_STATS_DATA,
        RequestCode.GET_BROKER_CONSUME_STATS,
        RequestCode.QUERY_CONSUME_QUEUE,
        RequestCode.GET_ALL_PRODUCER_INFO,
        RequestCode.GET_TOPIC_CONFIG,
        AdminRequestCode.COUNT_PARKED_MESSAGES,
    }
)
"""The codes of requests that every account may send.

A test checks that each request that the broker handles is listed here, in ADMIN_CODES or in FINDERS.
"""

AUDITOR_CODES: Final = ACCOUNT_CODES | {
    RequestCode.PULL_MESSAGE,
    RequestCode.LITE_PULL_MESSAGE,
    RequestCode.QUERY_MESSAGE,
    RequestCode.VIEW_MESSAGE_BY_ID,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    AdminRequestCode.LIST_PENDING_TRANSACTIONS,
    AdminRequestCode.SHOW_TRANSACTION,
    AdminRequestCode.LIST_DECIDED_TRANSACTIONS,
    AdminRequestCode.LIST_MARKS,
}
"""The codes of requests that only read.

An auditor may send them for every topic and group, except a pull that also commits the group's offset.
"""


@dataclass(frozen=True, slots=True)
class Needs:
    """The permissions that a request needs."""

    resources: Resources
    is_admin_needed: bool


def needs_of(command: RemotingCommand, topic_at: TopicAt) -> Needs:
    """Returns the permissions that the request needs. Raises ProtocolError if its header or body cannot be decoded.

    The header is decoded once and kept in the command, so that the handler uses the same values that were checked here.
    """
    find = FINDERS.get(command.code)
    resources = find(command, topic_at) if find is not None else {}
    return Needs(resources, command.code in ADMIN_CODES or any(map(_is_reserved, resources)))


def is_read_only(command: RemotingCommand) -> bool:
    """Returns whether the request only reads data, so an auditor may send it. Raises ProtocolError for an invalid header."""
    if command.code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
        return not command.decode_header(PullMessageRequestHeader).sys_flag & pull_sysflag.COMMIT_OFFSET
    return command.code in AUDITOR_CODES


def needs_of_consumer(topic: str, group: str) -> Needs:
    """Returns the permissions that a consumer of the group needs for each of its requests on the topic."""
    resources = _topic_and_group(topic, group)
    return Needs(resources, any(map(_is_reserved, resources)))


def _is_reserved(resource: str) -> bool:
    if resource.startswith(topics.RETRY_PREFIX):
        return topics.is_system_group(resource.removeprefix(topics.RETRY_PREFIX))
    return resource in topics.NOT_ALLOWED_SEND_TOPICS


def _topic(topic: str | None, permission: Permission) -> Resources:
    """Returns `permission` on the topic. A retry topic needs SUB, because its group's consumers send messages back to it."""
    if not topic:
        return {}
    return {topic: Permission.SUB if topic.startswith(topics.RETRY_PREFIX) else permission}


def _groups(groups: Iterable[str | None]) -> Resources:
    return {topics.retry_topic(group): Permission.SUB for group in groups if group}


def _topic_and_group(topic: str, group: str) -> Resources:
    return {**_topic(topic, Permission.SUB), **_groups([group])}


def _stored_at(commit_log_offset: int, topic_at: TopicAt) -> Resources:
    """Returns the permission needed to read the message at `commit_log_offset`, which is SUB on the message's topic.

    Returns an empty dict if there is no message.
    """
    message = topic_at(commit_log_offset)
    return {} if message is None else _topic(message.topic, Permission.SUB)


Named = TypeVar("Named", bound=CommandHeader)
_Finder = Callable[[RemotingCommand, TopicAt], Resources]


def _of(header_type: type[Named], resources: Callable[[Named, TopicAt], Resources]) -> _Finder:
    """Returns a function that decodes the header of a command and calls `resources` with it."""

    def find(command: RemotingCommand, topic_at: TopicAt) -> Resources:
        return resources(command.decode_header(header_type), topic_at)

    return find


def _send(header: SendHeader, topic_at: TopicAt) -> Resources:
    return _topic(header.topic, Permission.PUB)


def _reply(header: SendHeader, topic_at: TopicAt) -> Resources:
    return {} if header.topic.endswith(topics.REPLY_TOPIC_SUFFIX) else _topic(header.topic, Permission.PUB)


def _end_transaction(header: EndTransactionRequestHeader, topic_at: TopicAt) -> Resources:
    half = topic_at(header.commit_log_offset)
    return {} if half is None else _topic(half.real_topic, Permission.PUB)


def _send_back(header: ConsumerSendMsgBackRequestHeader, topic_at: TopicAt) -> Resources:
    """Returns SUB on the message's topic and on the group, because the group receives the message again from its retry topic."""
    return {**_stored_at(header.offset, topic_at), **_groups([header.group])}


def _consume_directly(header: ConsumeMessageDirectlyResultRequestHeader, topic_at: TopicAt) -> Resources:
    """Returns SUB on the message's topic and on the group, because the broker pushes the message to the named client."""
    needed = _groups([header.consumer_group])
    try:
        return {**_stored_at(parse_offset_message_id(header.msg_id or "").commit_log_offset, topic_at), **needed}
    except ValueError:
        return needed


def _clone_offsets(header: CloneGroupOffsetRequestHeader, topic_at: TopicAt) -> Resources:
    return {**_topic(header.topic, Permission.SUB), **_groups([header.src_group, header.dest_group])}


def _heartbeat(command: RemotingCommand, topic_at: TopicAt) -> Resources:
    needed: Resources = {}
    for consumer in HeartbeatData.decode(command.body).consumer_data_set:
        needed |= _groups([consumer.group_name])
        for subscription in consumer.subscription_data_set:
            needed |= _topic(subscription.topic, Permission.SUB)
    return needed


def _popped(topic: str, group: str) -> Resources:
    """Returns SUB on the group and on the popped topic. A pop retry topic is replaced by its original topic."""
    return {**_topic(topic.removeprefix(topics.pop_retry_topic(group, "")), Permission.SUB), **_groups([group])}


def _batch_ack(command: RemotingCommand, topic_at: TopicAt) -> Resources:
    needed: Resources = {}
    for ack in BatchAckMessageRequestBody.decode(command.body).acks:
        needed |= _popped(ack.topic, ack.consumer_group)
    return needed


def _assignment(command: RemotingCommand, topic_at: TopicAt) -> Resources:
    wanted = QueryAssignmentRequestBody.decode(command.body)
    return _topic_and_group(wanted.topic, wanted.consumer_group)


def _locks(command: RemotingCommand, topic_at: TopicAt) -> Resources:
    return _groups([LockBatchRequestBody.decode(command.body).consumer_group])


_PULL: Final = _of(PullMessageRequestHeader, lambda header, _: _topic_and_group(header.topic, header.consumer_group))

FINDERS: Final[dict[int, _Finder]] = {
    RequestCode.SEND_MESSAGE: _of(SendMessageRequestHeader, _send),
    RequestCode.SEND_MESSAGE_V2: _of(SendMessageRequestHeaderV2, _send),
    RequestCode.SEND_BATCH_MESSAGE: _of(SendMessageRequestHeaderV2, _send),
    RequestCode.SEND_REPLY_MESSAGE: _of(SendMessageRequestHeader, _reply),
    RequestCode.SEND_REPLY_MESSAGE_V2: _of(SendMessageRequestHeaderV2, _reply),
    RequestCode.END_TRANSACTION: _of(EndTransactionRequestHeader, _end_transaction),
    RequestCode.PULL_MESSAGE: _PULL,
    RequestCode.LITE_PULL_MESSAGE: _PULL,
    RequestCode.POP_MESSAGE: _of(
        PopMessageRequestHeader, lambda header, _: _topic_and_group(header.topic, header.consumer_group)
    ),
    RequestCode.NOTIFICATION: _of(
        NotificationRequestHeader, lambda header, _: _topic_and_group(header.topic, header.consumer_group)
    ),
    RequestCode.ACK_MESSAGE: _of(AckMessageRequestHeader, lambda header, _: _popped(header.topic, header.consumer_group)),
    RequestCode.BATCH_ACK_MESSAGE: _batch_ack,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: _of(
        ChangeInvisibleTimeRequestHeader, lambda header, _: _popped(header.topic, header.consumer_group)
    ),
    RequestCode.QUERY_ASSIGNMENT: _assignment,
    RequestCode.QUERY_MESSAGE: _of(QueryMessageRequestHeader, lambda header, _: _topic(header.topic, Permission.SUB)),
    RequestCode.VIEW_MESSAGE_BY_ID: _of(ViewMessageRequestHeader, lambda header, at: _stored_at(header.offset, at)),
    RequestCode.CONSUMER_SEND_MSG_BACK: _of(ConsumerSendMsgBackRequestHeader, _send_back),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _of(
        GetConsumerListByGroupRequestHeader, lambda header, _: _groups([header.consumer_group])
    ),
    RequestCode.UNREGISTER_CLIENT: _of(UnregisterClientRequestHeader, lambda header, _: _groups([header.consumer_group])),
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.UPDATE_CONSUMER_OFFSET: _of(
        UpdateConsumerOffsetRequestHeader, lambda header, _: _topic_and_group(header.topic, header.consumer_group)
    ),
    RequestCode.LOCK_BATCH_MQ: _locks,
    RequestCode.UNLOCK_BATCH_MQ: _locks,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: _of(
        ResetOffsetRequestHeader, lambda header, _: _topic_and_group(header.topic, header.group)
    ),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _of(
        GetConsumerStatusRequestHeader, lambda header, _: _topic_and_group(header.topic, header.group)
    ),
    RequestCode.GET_CONSUMER_RUNNING_INFO: _of(
        GetConsumerRunningInfoRequestHeader, lambda header, _: _groups([header.consumer_group])
    ),
    RequestCode.CLONE_GROUP_OFFSET: _of(CloneGroupOffsetRequestHeader, _clone_offsets),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _of(ConsumeMessageDirectlyResultRequestHeader, _consume_directly),
}
"""Maps request codes to finders.

A finder returns the topics and groups that a request names, with the permissions that the request needs.
"""
