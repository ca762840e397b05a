"""The properties of stored messages that have their own fields in the API (RocketMQ's MessageConst)."""

from typing import Final

from rocketmq_broker.message import properties as props

MESSAGE_GROUP: Final = "__SHARDINGKEY"
DELIVER_MS: Final = "TIMER_DELIVER_MS"
TRACE_CONTEXT: Final = "TRACE_CONTEXT"

OF_SYSTEM: Final = frozenset(
    {
        *(props.KEYS, props.TAGS, props.WAIT_STORE_MSG_OK, props.DELAY_TIME_LEVEL, props.RETRY_TOPIC, props.REAL_TOPIC),
        *(props.REAL_QUEUE_ID, props.TRANSACTION_PREPARED, props.PRODUCER_GROUP, props.MIN_OFFSET, props.MAX_OFFSET),
        *(props.ORIGIN_MESSAGE_ID, props.RECONSUME_TIME, props.MSG_REGION, props.TRACE_SWITCH, props.UNIQUE_KEY),
        *(props.MAX_RECONSUME_TIMES, props.CONSUME_START_TIME, props.TRANSACTION_PREPARED_QUEUE_OFFSET),
        *(props.TRANSACTION_CHECK_TIMES, props.CHECK_IMMUNITY_TIME_IN_SECONDS, props.INSTANCE_ID, props.CLUSTER),
        *(props.CORRELATION_ID, props.REPLY_TO_CLIENT, props.MESSAGE_TTL, props.MESSAGE_TYPE, props.PUSH_REPLY_TIME),
        *(props.INNER_MULTI_QUEUE_OFFSET, MESSAGE_GROUP, DELIVER_MS, TRACE_CONTEXT),
    }
)
"""The reserved names.

They are refused in the user properties of sent messages, and removed from the user properties of received messages.
"""
