"""A registration as long as a frame may be, as JSON."""

from benchmarks.longest_stop.rows.name_server.brokers_of_one_connection import header
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies import RegisterBrokerBody, TopicConfigSerializeWrapper
from rocketmq_broker.protocol.codes import RequestCode

WHAT = "registration of 5 MB, and of 15 MB"
SIZES = (30_000, 88_000)


async def run(stage: Stage) -> None:
    """Measures the registrations."""
    bodies = [registration(topics) for topics in SIZES]
    peer = await stage.connect(stage.name_server)
    await stage.begin()
    for number, body in enumerate(bodies):
        await peer.ask(RequestCode.REGISTER_BROKER, header(f"b-{number}", number), body)


def registration(topics: int) -> bytes:
    """Returns a registration with that many topics."""
    table = {f"some-topic-name-{number}": TopicConfig(topic_name=f"some-topic-name-{number}") for number in range(topics)}
    wrapper = TopicConfigSerializeWrapper(topic_config_table=table)
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode()
