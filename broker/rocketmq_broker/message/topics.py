"""Topic names: system topics, topics derived from a group, and the validation of names (RocketMQ's TopicValidator)."""

import hashlib
import re
from functools import lru_cache
from typing import Final

from rocketmq_broker.message.errors import IllegalMessage

AUTO_CREATE_TOPIC: Final = "TBW102"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECK_MAX_TIME_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_EVENT_TOPIC: Final = "OFFSET_MOVED_EVENT"
PARKED_MARK_TOPIC: Final = "rmq_sys_PARKED_MARK_TOPIC"
"""The topic in which operators' actions on dead letters and discarded messages are recorded. RocketMQ has no such topic."""

POP_LOG_TOPIC: Final = "rmq_sys_POP_LOG_TOPIC"
"""The topic in which pops and acknowledgements are recorded. RocketMQ's topic is rmq_sys_REVIVE_LOG_<cluster>."""
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""The group whose offset in the pop log is the position where a starting broker begins to read (PopAckConstants.REVIVE_GROUP)."""

TRANSACTION_CONSUMER_GROUP: Final = "CID_RMQ_SYS_TRANS"
"""The group that consumes the half and op topics (MixAll.CID_SYS_RMQ_TRANS).

All half messages before its offset in the half topic are closed.
"""

RETRY_PREFIX: Final = "%RETRY%"
REPLY_TOPIC_SUFFIX: Final = "_REPLY_TOPIC"
DEAD_LETTER_PREFIX: Final = "%DLQ%"

MAX_TOPIC_LENGTH: Final = 127
_DIGEST_LENGTH: Final = 32
MAX_GROUP_LENGTH: Final = 255
MAX_CONSUMER_GROUP_LENGTH: Final = MAX_TOPIC_LENGTH - len(RETRY_PREFIX)
"""The maximum length of the name of a consumer group, in characters.

The limit exists because the name of the retry topic contains the group's name. RocketMQ 4.9 allows 255 characters but loses
the messages that such groups send back. RocketMQ 5 has the same limit as this project.
"""
MAX_QUEUES: Final = 10_000
"""The maximum number of queues of a topic at a broker. It limits the time to encode responses with an entry for each queue."""

SYSTEM_TOPICS: Final = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        TRACE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT_TOPIC,
    }
)
NOT_ALLOWED_SEND_TOPICS: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT_TOPIC,
        PARKED_MARK_TOPIC,
        POP_LOG_TOPIC,
    }
)

CONSUMED_BY_THE_BROKER: Final = frozenset({SCHEDULE_TOPIC, HALF_TOPIC, OP_HALF_TOPIC, POP_LOG_TOPIC})
"""The topics that only the broker consumes. Their messages are delayed or undecided, or record operations of the broker."""

SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"

_LEGAL_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")


def reply_topic(cluster: str) -> str:
    """Returns the topic for replies to request messages (request-reply) in the cluster."""
    return cluster + REPLY_TOPIC_SUFFIX


def retry_topic(consumer_group: str) -> str:
    """Returns the topic for messages that are redelivered to the group."""
    return RETRY_PREFIX + consumer_group


def pop_retry_topic(consumer_group: str, topic: str) -> str:
    """Returns the topic for the group's popped messages that were not acknowledged in time (KeyBuilder.buildPopRetryTopicV1).

    If `topic` is a retry topic, returns it unchanged. A name that is too long for a record is truncated and ends with a digest of
    the full name. RocketMQ 5 stores such messages in another format, which 4.9 cannot read.
    """
    if topic.startswith(RETRY_PREFIX):
        return topic
    name = f"{RETRY_PREFIX}{consumer_group}_{topic}"
    return name if len(name) <= MAX_TOPIC_LENGTH else _cut(name)


@lru_cache(4096)
def _cut(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: MAX_TOPIC_LENGTH - 1 - _DIGEST_LENGTH]}_{digest}"


def dead_letter_topic(consumer_group: str) -> str:
    """Returns the topic for messages that failed too often in the group."""
    return DEAD_LETTER_PREFIX + consumer_group


def is_system_topic(topic: str) -> bool:
    """Returns True if the topic is reserved for the broker."""
    return topic in SYSTEM_TOPICS or topic.startswith("rmq_sys_")


def is_system_group(group: str) -> bool:
    """Returns True if the group is reserved for the broker (MixAll.isSysConsumerGroup)."""
    return group.startswith(SYSTEM_GROUP_PREFIX)


def takes_sent_messages(topic: str) -> bool:
    """Returns True if clients may send messages to the topic, and False if only the broker may."""
    return is_topic(topic) and topic not in NOT_ALLOWED_SEND_TOPICS


def takes_transactions(topic: str) -> bool:
    """Returns True if clients may send transactional messages to the topic. Returns False for retry and dead-letter topics."""
    return takes_sent_messages(topic) and not topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))


def is_topic(topic: str) -> bool:
    """Returns True if this is a valid name of a topic, for which `validate_topic` raises no error."""
    return len(topic) <= MAX_TOPIC_LENGTH and _is_legal_name(topic)


def validate_topic(topic: str) -> None:
    """Raises IllegalMessage, with the error message of Apache's broker, if the topic name is invalid."""
    if not topic.strip():
        raise IllegalMessage("The specified topic is blank.")
    if not _is_legal_name(topic):
        raise IllegalMessage("The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
    if len(topic) > MAX_TOPIC_LENGTH:
        raise IllegalMessage("The specified topic is longer than topic max length.")


def validate_group(group: str) -> None:
    """Raises IllegalMessage if the group name is invalid (RocketMQ's Validators.checkGroup)."""
    if not group.strip():
        raise IllegalMessage("the specified group is blank")
    if len(group) > MAX_GROUP_LENGTH:
        raise IllegalMessage("the specified group is longer than group max length 255.")
    if not _is_legal_name(group):
        raise IllegalMessage(f"the specified group[{group}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")


def validate_consumer_group(group: str) -> None:
    """Raises IllegalMessage if the consumer group name is invalid or too long for the name of its retry topic."""
    validate_group(group)
    if len(group) > MAX_CONSUMER_GROUP_LENGTH:
        raise IllegalMessage(
            f"name of consumer group[{group}] too long: {len(group)} characters, at most {MAX_CONSUMER_GROUP_LENGTH}, "
            f"because its retry topic may have at most {MAX_TOPIC_LENGTH}"
        )


def is_group(group: str) -> bool:
    """Returns True if this is a valid name of a producer or consumer group."""
    return len(group) <= MAX_GROUP_LENGTH and _is_legal_name(group)


def _is_legal_name(name: str) -> bool:
    # Only short names are cached, because clients choose the names' length.
    return _is_legal_short_name(name) if len(name) <= MAX_GROUP_LENGTH else _LEGAL_NAME.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _is_legal_short_name(name: str) -> bool:
    return _LEGAL_NAME.fullmatch(name) is not None
