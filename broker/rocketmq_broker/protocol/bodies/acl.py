"""Bodies with accounts, in operators' requests and the responses."""

from collections.abc import Mapping

import msgspec

from rocketmq_broker.protocol.bodies.topic import DataVersion
from rocketmq_broker.protocol.body import Body, BodyPart


class PlainAccessConfig(BodyPart):
    """One account (RocketMQ's PlainAccessConfig)."""

    access_key: str
    secret_key: str | None = None
    """The account's secret key. RocketMQ's brokers include it in answers, but this broker does not."""
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = None
    group_perms: list[str] | None = None


class GetBrokerClusterAclConfigResponseBody(Body):
    """The response body of GET_BROKER_CLUSTER_ACL_CONFIG."""

    global_white_addrs: list[str] = []
    plain_access_configs: list[PlainAccessConfig] = []


def versions_as_json(versions: Mapping[str, DataVersion]) -> str:
    """Returns the versions of account files as a JSON object, keyed by path, for a header field."""
    return msgspec.json.encode(versions).decode()
