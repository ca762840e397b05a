"""Routes: the brokers and queues of a topic (RocketMQ's TopicRouteData)."""

import msgspec

from rocketmq_broker.message.text import fastjson
from rocketmq_broker.protocol.body import Body, BodyPart

MASTER_ID = 0
"""The broker id of a master. Slaves have other ids."""


class QueueData(BodyPart):
    """The numbers of readable and writeable queues of a topic on one broker, and the topic's permission."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    """The sum of 4 (read), 2 (write) and 1 (inherit)."""
    topic_sys_flag: int = 0


class BrokerData(BodyPart):
    """The addresses of the brokers with one name."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str]
    """Addresses keyed by broker id. The master's id is 0."""
    enable_acting_master: bool = False
    """True in RocketMQ 5 if a slave may act as the master. Decision record 0008 explains which clients need this field."""

    @property
    def master_address(self) -> str | None:
        """Returns the address of the master, or None."""
        return self.broker_addrs.get(MASTER_ID)


class TopicRouteData(Body):
    """The body of the response to GET_ROUTEINFO_BY_TOPIC."""

    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    order_topic_conf: str | None = None
    filter_server_table: dict[str, list[str]] | None = {}

    def encode(self) -> bytes:
        """Encodes the body as standard JSON."""
        return self.encode_for(accepts_standard_json_only=True)

    def encode_for(self, *, accepts_standard_json_only: bool) -> bytes:
        """Encodes the body as standard JSON, or with unquoted broker ids for older clients.

        Apache's name server sends standard JSON to clients of version 4.9.4 or later, and to clients that request it
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
    """The body of the response to GET_BROKER_CLUSTER_INFO."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}
    """The names of brokers, keyed by cluster name."""

    def encode(self) -> bytes:
        """Encodes the body with unquoted broker ids, as Apache's name server does."""
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
