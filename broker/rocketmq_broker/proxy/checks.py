"""Checks of what clients name, each with RocketMQ's own code (RocketMQ's GrpcValidator).

The broker's answer to a bad name is SYSTEM_ERROR, which would become a server's error here.
"""

from __future__ import annotations

import re
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.protos import definition_pb2 as api

MAX_ADDRESSES: Final = 64
"""Of one client's endpoints: the name servers or proxies of a large cluster."""
MAX_HOST_LENGTH: Final = 255
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def refuse_topic(name: str) -> None:
    """Raises CallRefused for a name that no topic can have, and for a topic of the broker's own."""
    try:
        topics.validate_topic(name)
        if name.startswith(topics.RETRY_PREFIX):
            topics.validate_consumer_group(name.removeprefix(topics.RETRY_PREFIX))
    except IllegalMessage as error:
        raise CallRefused(api.ILLEGAL_TOPIC, str(error)) from None
    if topics.is_system_topic(name):
        raise CallRefused(api.ILLEGAL_TOPIC, f"the topic {name} is the broker's own: no client can use it")


def refuse_consumer_group(name: str) -> None:
    """Raises CallRefused for a name that no consumer group can have, and for a group of the broker's own."""
    try:
        topics.validate_consumer_group(name)
    except IllegalMessage as error:
        raise CallRefused(api.ILLEGAL_CONSUMER_GROUP, str(error)) from None
    if topics.is_system_group(name):
        raise CallRefused(api.ILLEGAL_CONSUMER_GROUP, f"the group {name} is the broker's own: no client can use it")


def refuse_endpoints(endpoints: api.Endpoints) -> None:
    """Raises CallRefused for endpoints that no client connects to: they come back in answers, some many times."""
    if len(endpoints.addresses) > MAX_ADDRESSES:
        reason = f"too many addresses in endpoints: {len(endpoints.addresses)}, at most {MAX_ADDRESSES}"
        raise CallRefused(api.ILLEGAL_ACCESS_POINT, reason)
    if any(len(address.host) > MAX_HOST_LENGTH for address in endpoints.addresses):
        reason = f"host too long in endpoints: at most {MAX_HOST_LENGTH} letters"
        raise CallRefused(api.ILLEGAL_ACCESS_POINT, reason)


def refuse_control_characters(text: str, code: api.Code, what: str) -> None:
    """Raises CallRefused with that code for a text that holds one."""
    if _CONTROL_CHARACTER.search(text) is not None:
        raise CallRefused(code, f"{what} holds a control character")
