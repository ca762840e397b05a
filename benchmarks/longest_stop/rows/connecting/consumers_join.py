"""A thousand members of one consumer group connect at once, as after a restart, and divide the queues on notice."""

import asyncio

from benchmarks.longest_stop.peer import Peer
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import GetConsumerListByGroupRequestHeader

WHAT = "1,000 members join a group"
MEMBERS = 1000
GROUP = "crowd"


async def run(stage: Stage) -> None:
    """Measures the heartbeats, the notices, and the following questions for the list of members."""
    peers = [await stage.connect() for _ in range(MEMBERS)]
    consumer = ConsumerData(group_name=GROUP, subscription_data_set=[SubscriptionData(topic="orders")])
    await stage.begin()
    for number, peer in enumerate(peers):
        heartbeat = HeartbeatData(client_id=f"client-{number}", consumer_data_set=[consumer])
        await peer.write(peer.frame(RequestCode.HEART_BEAT, body=heartbeat.encode()))
    await asyncio.gather(*(_divide(peer) for peer in peers))


async def _divide(peer: Peer) -> None:
    await peer.answers(1)
    await peer.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader(consumer_group=GROUP))
