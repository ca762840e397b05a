"""Tests that a broker with very many topics can register in compressed form with Apache's name server."""

from pathlib import Path

import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies.route import TopicRouteData
from rocketmq_broker.protocol.bodies.topic import TopicList
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.name_server import GetRouteInfoRequestHeader, RegisterBrokerRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.server.topics.config_bodies import TopicsSnapshot
from rocketmq_broker.server.topics.registration import encode_registration
from rocketmq_broker.store.tables.config_file import TableVersion
from tests.foreign.apache.cluster import apache_rocketmq

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

TOPICS = 60_000


async def test_apaches_name_server_takes_sixty_thousand_topics(tmp_path: Path) -> None:
    topics = tuple(TopicConfig(f"topic-{number}", 3, 5) for number in range(TOPICS))
    encoded = encode_registration(TopicsSnapshot(topics, TableVersion(1, 1)), 6)
    header = RegisterBrokerRequestHeader(
        broker_name="broker-x",
        broker_addr="127.0.0.1:10911",
        cluster_name="cluster-x",
        ha_server_addr="",
        broker_id=0,
        compressed=encoded.is_compressed,
        body_crc32=encoded.crc32,
    )
    with apache_rocketmq(tmp_path) as name_server:
        client = RemotingClient()
        answer = await client.invoke(name_server, RequestCode.REGISTER_BROKER, header, encoded.body, timeout_ms=60_000)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        route = await client.invoke(
            name_server,
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            GetRouteInfoRequestHeader(topic=f"topic-{TOPICS - 1}"),
            timeout_ms=60_000,
        )
        topics_known = await client.invoke(name_server, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, timeout_ms=60_000)
        await client.close()
    (queues,) = TopicRouteData.decode(route.body).queue_datas
    assert (queues.broker_name, queues.read_queue_nums, queues.write_queue_nums) == ("broker-x", 3, 5)
    assert len(TopicList.decode(topics_known.body).topic_list) >= TOPICS
