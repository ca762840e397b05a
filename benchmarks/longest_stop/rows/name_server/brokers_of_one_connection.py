"""One client registers 8,000 brokers at a name server with 20,000 topics, and disconnects."""

import contextlib

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies import DataVersion, RegisterBrokerBody, TopicConfigSerializeWrapper
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import RegisterBrokerRequestHeader

WHAT = "hang up after 8,000 brokers at a name server with 20,000 topics"
BROKERS = 8000
TOPICS = 20_000


async def run(stage: Stage) -> None:
    """Measures the registrations and the end of their connection."""
    peer = await stage.connect(stage.name_server)
    topics = {f"topic-{number}": TopicConfig(topic_name=f"topic-{number}") for number in range(TOPICS)}
    body = RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigSerializeWrapper(topic_config_table=topics, data_version=DataVersion(counter=1))
    ).encode()
    await peer.ask(RequestCode.REGISTER_BROKER, header("large", 1), body)
    greedy = await stage.connect(stage.name_server)
    await stage.begin()
    with contextlib.suppress(ConnectionError):
        await greedy.ask_all(greedy.frame(RequestCode.REGISTER_BROKER, header(f"b-{n}", n)) for n in range(2, BROKERS + 2))
    greedy.hang_up()


def header(name: str, number: int) -> RegisterBrokerRequestHeader:
    """Returns the header of a registration; each number has its own address."""
    return RegisterBrokerRequestHeader(
        broker_name=name,
        broker_addr=f"10.1.{number >> 8}.{number & 255}:10911",
        cluster_name="DefaultCluster",
        ha_server_addr="",
        broker_id=0,
    )
