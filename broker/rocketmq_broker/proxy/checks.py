"""Validates names from clients, with RocketMQ's status codes (RocketMQ's GrpcValidator).

Names are checked here because the broker responds to an invalid name with SYSTEM_ERROR, which would become a server error.
"""

import re
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.protos import definition_pb2 as api

MAX_ADDRESSES: Final = 64
"""The maximum number of addresses in one client's endpoints: enough for the name servers or proxies of a large cluster."""
MAX_HOST_LENGTH: Final = 255
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def refuse_topic(name: str) -> None:
    """Raises CallRefused for an invalid topic name, and for a system topic."""
    try:
        topics.validate_topic(name)
        if name.startswith(topics.RETRY_PREFIX):
            topics.validate_consumer_group(name.removeprefix(topics.RETRY_PREFIX))
    except IllegalMessage as error:
        raise CallRefused(api.ILLEGAL_TOPIC, str(error)) from None
    if topics.is_system_topic(name):
        raise CallRefused(api.ILLEGAL_TOPIC, f"the topic {name} is reserved for the broker")


def refuse_consumer_group(name: str) -> None:
    """Raises CallRefused for an invalid consumer group name, and for a system group."""
    try:
        topics.validate_consumer_group(name)
    except IllegalMessage as error:
        raise CallRefused(api.ILLEGAL_CONSUMER_GROUP, str(error)) from None
    if topics.is_system_group(name):
        raise CallRefused(api.ILLEGAL_CONSUMER_GROUP, f"the group {name} is reserved for the broker")


def refuse_endpoints(endpoints: api.Endpoints) -> None:
    """Raises CallRefused if there are too many addresses or one is too long.

    The addresses are limited because responses repeat them.
    """
    if len(endpoints.addresses) > MAX_ADDRESSES:
        reason = f"too many addresses in endpoints: {len(endpoints.addresses)}, at most {MAX_ADDRESSES}"
        raise CallRefused(api.ILLEGAL_ACCESS_POINT, reason)
    if any(len(address.host) > MAX_HOST_LENGTH for address in endpoints.addresses):
        reason = f"host too long in endpoints: at most {MAX_HOST_LENGTH} characters"
        raise CallRefused(api.ILLEGAL_ACCESS_POINT, reason)


def refuse_control_characters(text: str, code: api.Code, what: str) -> None:
    """Raises CallRefused with `code` if the text contains a control character. `what` names the text in the error."""
    if _CONTROL_CHARACTER.search(text) is not None:
        raise CallRefused(code, f"{what} must not contain control characters")
