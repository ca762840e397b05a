"""An operator deletes a topic of 8,000 queues, each with a file."""

import asyncio

from benchmarks.longest_stop.rows.sending.first_messages import CHECKPOINT_S, Topic
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import DeleteTopicRequestHeader

WHAT = "deletion of a topic of 8,000 queues"


async def run(stage: Stage) -> None:
    """Measures the deletion."""
    topic = Topic()
    await topic.make(stage)
    await topic.fill(stage)
    await asyncio.sleep(CHECKPOINT_S)
    await stage.begin()
    peer = await stage.connect()
    await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic.name))
