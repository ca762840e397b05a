"""The first message to each of 8,000 queues: each gets a folder and a file."""

import asyncio
from dataclasses import dataclass

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import CreateTopicRequestHeader, SendMessageRequestHeaderV2

WHAT = "first message to each of 8,000 queues"
QUEUES = 8_000
CHECKPOINT_S = 7.0
"""The files are made with the next checkpoint at the latest."""


@dataclass
class Topic:
    """A topic with all these queues."""

    name: str = "wide"

    async def make(self, stage: Stage) -> None:
        """Creates the topic."""
        header = CreateTopicRequestHeader(self.name, "TBW102", QUEUES, QUEUES, 6, "SINGLE_TAG")
        await (await stage.connect()).ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def fill(self, stage: Stage) -> None:
        """Sends one message to each queue."""
        peer = await stage.connect()
        for first in range(0, QUEUES, 1000):
            await peer.ask_all(
                [peer.frame(RequestCode.SEND_MESSAGE_V2, self._send(first + number), b"x") for number in range(1000)]
            )

    def _send(self, queue_id: int) -> SendMessageRequestHeaderV2:
        return SendMessageRequestHeaderV2(
            producer_group="greedy", topic=self.name, default_topic="TBW102", default_topic_queue_nums=8, queue_id=queue_id,
            sys_flag=0, born_timestamp=1, flag=0,
        )  # fmt: skip


async def run(stage: Stage) -> None:
    """Measures the messages and the following checkpoint."""
    topic = Topic()
    await topic.make(stage)
    await stage.begin()
    await topic.fill(stage)
    await asyncio.sleep(CHECKPOINT_S)
