"""Topic names: system topics, topics derived from a group, and the rules of names (RocketMQ's TopicValidator)."""

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
"""A topic that is not RocketMQ's: records of what operators did with dead letters and discarded messages."""

POP_LOG_TOPIC: Final = "rmq_sys_POP_LOG_TOPIC"
"""A topic that is not RocketMQ's: records of what was popped and acknowledged. RocketMQ has rmq_sys_REVIVE_LOG_<cluster>."""
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""The group whose offset on the pop log tells where the next start begins to read (PopAckConstants.REVIVE_GROUP)."""

TRANSACTION_CONSUMER_GROUP: Final = "CID_RMQ_SYS_TRANS"
"""The group whose offsets on the half and op topics tell how far transactions are settled (MixAll.CID_SYS_RMQ_TRANS)."""

RETRY_PREFIX: Final = "%RETRY%"
REPLY_TOPIC_SUFFIX: Final = "_REPLY_TOPIC"
DEAD_LETTER_PREFIX: Final = "%DLQ%"

MAX_TOPIC_LENGTH: Final = 127
_DIGEST_LENGTH: Final = 32
MAX_GROUP_LENGTH: Final = 255
MAX_CONSUMER_GROUP_LENGTH: Final = MAX_TOPIC_LENGTH - len(RETRY_PREFIX)
"""Bounded because a consumer group's name is part of its retry topic's name. RocketMQ 4.9 allows 255 letters, and loses what such
groups send back; 5.x has this bound too."""
MAX_QUEUES: Final = 10_000
"""More than a user needs. Some answers have a line for each queue, and writing one takes up to some 40 ms."""

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
"""Topics whose messages consumers may not see yet: they are delayed or undecided, or record the decisions of others."""

SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"

_LEGAL_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")


def reply_topic(cluster: str) -> str:
    """Returns the topic for replies to requests that a broker of the cluster stored."""
    return cluster + REPLY_TOPIC_SUFFIX


def retry_topic(consumer_group: str) -> str:
    """Returns the topic in which a group's messages wait for another attempt."""
    return RETRY_PREFIX + consumer_group


def pop_retry_topic(consumer_group: str, topic: str) -> str:
    """Returns the topic for the group's popped messages that were not acknowledged in time (KeyBuilder.buildPopRetryTopicV1).

    A retry topic is its own. A name that no record of the commit log can hold is cut, and ends with a digest of the whole:
    RocketMQ 5 stores such a message in another form, which 4.9 cannot read.
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
    """Returns the topic for messages that failed too often in a group."""
    return DEAD_LETTER_PREFIX + consumer_group


def is_system_topic(topic: str) -> bool:
    """Returns whether the name is reserved for the broker."""
    return topic in SYSTEM_TOPICS or topic.startswith("rmq_sys_")


def is_system_group(group: str) -> bool:
    """Returns whether the broker itself consumes as this group (MixAll.isSysConsumerGroup)."""
    return group.startswith(SYSTEM_GROUP_PREFIX)


def takes_sent_messages(topic: str) -> bool:
    """Returns whether a client may send messages to that topic; False for topics that only the broker writes."""
    return len(topic) <= MAX_TOPIC_LENGTH and _is_legal_name(topic) and topic not in NOT_ALLOWED_SEND_TOPICS


def takes_transactions(topic: str) -> bool:
    """Returns whether a transaction may send to that topic; not to a retry or dead-letter topic."""
    return takes_sent_messages(topic) and not topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))


def validate_topic(topic: str) -> None:
    """Raises IllegalMessage, in Apache's words, if no topic can have this name."""
    if not topic.strip():
        raise IllegalMessage("The specified topic is blank.")
    if not _is_legal_name(topic):
        raise IllegalMessage("The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
    if len(topic) > MAX_TOPIC_LENGTH:
        raise IllegalMessage("The specified topic is longer than topic max length.")


def validate_group(group: str) -> None:
    """Raises IllegalMessage if no producer or consumer group can have this name (RocketMQ's Validators.checkGroup)."""
    if not group.strip():
        raise IllegalMessage("the specified group is blank")
    if len(group) > MAX_GROUP_LENGTH:
        raise IllegalMessage("the specified group is longer than group max length 255.")
    if not _is_legal_name(group):
        raise IllegalMessage(f"the specified group[{group}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")


def validate_consumer_group(group: str) -> None:
    """Raises IllegalMessage if no consumer group can have this name, which must leave room for the prefix of its retry topic."""
    validate_group(group)
    if len(group) > MAX_CONSUMER_GROUP_LENGTH:
        raise IllegalMessage(
            f"the consumer group[{group}] has {len(group)} letters; {MAX_CONSUMER_GROUP_LENGTH} are allowed, "
            f"so that its retry topic has no more than a topic may have ({MAX_TOPIC_LENGTH})"
        )


def is_group(group: str) -> bool:
    """Returns whether a producer or consumer group can have this name."""
    return len(group) <= MAX_GROUP_LENGTH and _is_legal_name(group)


def _is_legal_name(name: str) -> bool:
    # Only short names are cached: a client chooses the length of the names that it sends.
    return _is_legal_short_name(name) if len(name) <= MAX_GROUP_LENGTH else _LEGAL_NAME.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _is_legal_short_name(name: str) -> bool:
    return _LEGAL_NAME.fullmatch(name) is not None
