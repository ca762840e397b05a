"""Routes: which brokers hold the queues of a topic (RocketMQ's TopicRouteData)."""

from __future__ import annotations

import msgspec

from rocketmq_broker.protocol import fastjson
from rocketmq_broker.protocol.body import Body, BodyPart

MASTER_ID = 0
"""The broker id of a master; slaves have others."""


class QueueData(BodyPart):
    """How many queues of the topic one broker has, and who may use them."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    """4 read, 2 write, 1 inherit."""
    topic_sys_flag: int = 0


class BrokerData(BodyPart):
    """Where the brokers of one name are."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str]
    """Broker id -> address; the master's id is 0."""
    enable_acting_master: bool = False
    """Of RocketMQ 5, where a slave may stand in for its master. Some clients fail without it, others on it: see decision 0008."""

    @property
    def master_address(self) -> str | None:
        """The address of the master, if it is there."""
        return self.broker_addrs.get(MASTER_ID)


class TopicRouteData(Body):
    """The body of the answer to GET_ROUTEINFO_BY_TOPIC."""

    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    order_topic_conf: str | None = None
    filter_server_table: dict[str, list[str]] | None = {}

    def encode(self) -> bytes:
        """The bytes to send to whoever reads standard JSON."""
        return self.encode_for(accepts_standard_json_only=True)

    def encode_for(self, *, accepts_standard_json_only: bool) -> bytes:
        """The bytes to send: standard JSON, or with unquoted broker ids as older clients expect.

        Apache's name server sends standard JSON to clients of version 4.9.4 or later and to those that ask for it
        (acceptStandardJsonOnly).
        """
        brokers = self.broker_datas if accepts_standard_json_only else [_broker(broker) for broker in self.broker_datas]
        members = {
            "brokerDatas": brokers,
            "filterServerTable": self.filter_server_table,
            "orderTopicConf": self.order_topic_conf,
            "queueDatas": self.queue_datas,
        }
        return msgspec.json.encode({name: value for name, value in members.items() if value is not None})


class ClusterInfo(Body):
    """The body of the answer to GET_BROKER_CLUSTER_INFO."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}
    """Cluster name -> broker names."""

    def encode(self) -> bytes:
        """The bytes to send, with unquoted broker ids as Apache's name server writes them."""
        return msgspec.json.encode(
            {
                "brokerAddrTable": {name: _broker(broker) for name, broker in self.broker_addr_table.items()},
                "clusterAddrTable": self.cluster_addr_table,
            }
        )


def _broker(broker: BrokerData) -> dict[str, object]:
    return {
        "brokerAddrs": fastjson.number_keyed(broker.broker_addrs),
        "brokerName": broker.broker_name,
        "cluster": broker.cluster,
    }
