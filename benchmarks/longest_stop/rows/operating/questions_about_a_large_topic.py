"""An operator asks for a group's progress in a topic with as many queues as possible."""

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import (
    CreateTopicRequestHeader,
    GetConsumeStatsRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)

WHAT = "questions about a topic with 10,000 queues"
TOPIC = "large"
GROUP = "patient"
QUEUES = 10_000


async def run(stage: Stage) -> None:
    """Measures three questions."""
    peer = await stage.connect()
    await peer.ask(
        RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicRequestHeader(TOPIC, "TBW102", QUEUES, QUEUES, 6, "SINGLE_TAG")
    )
    await stage.begin()
    await peer.ask(RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader(topic=TOPIC))
    await peer.ask(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader(consumer_group=GROUP, topic=TOPIC))
    await peer.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanRequestHeader(topic=TOPIC, group=GROUP))
