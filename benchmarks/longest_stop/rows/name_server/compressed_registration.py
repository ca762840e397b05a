"""Registrations of 50 kB that inflate to megabytes: one of valid topics, one bomb."""

import zlib

from benchmarks.longest_stop.rows.name_server.brokers_of_one_connection import header
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies import RegisterBrokerBody, TopicConfigSerializeWrapper
from rocketmq_broker.protocol.codes import RequestCode

WHAT = "compressed registration, 50 kB to 26 MB"
TOPICS = 65_000
MANY_TOPICS = 650_000
BOMB_BYTES = 50_000_000


async def run(stage: Stage) -> None:
    """Measures the registrations."""
    bodies = [compressed(TOPICS), compressed(MANY_TOPICS), zlib.compress(bytes(BOMB_BYTES), 9)]
    peer = await stage.connect(stage.name_server)
    await stage.begin()
    for number, body in enumerate(bodies):
        registration = header(f"b-{number}", number)
        registration.compressed = True
        await peer.ask(RequestCode.REGISTER_BROKER, registration, body)


def compressed(topics: int) -> bytes:
    """Returns a compressed registration with that many topics."""
    table = {f"t{number}": TopicConfig(topic_name=f"t{number}") for number in range(topics)}
    wrapper = TopicConfigSerializeWrapper(topic_config_table=table)
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode_compressed()
