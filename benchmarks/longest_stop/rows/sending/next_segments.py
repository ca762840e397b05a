"""Messages fill one commit log segment after the other."""

import os

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import SendMessageRequestHeaderV2

WHAT = "20 new commit log segments"
SEGMENT_BYTES = 4 * 1024 * 1024
SETTINGS = {"mapedFileSizeCommitLog": str(SEGMENT_BYTES)}
SEND = SendMessageRequestHeaderV2(
    producer_group="busy", topic="log", default_topic="TBW102", default_topic_queue_nums=1, queue_id=0, sys_flag=0,
    born_timestamp=1, flag=0,
)  # fmt: skip


async def run(stage: Stage) -> None:
    """Measures all of it."""
    peer = await stage.connect()
    await peer.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"x")
    body = os.urandom(SEGMENT_BYTES // 16)
    await stage.begin()
    for _ in range(20 * 16):
        await peer.ask(RequestCode.SEND_MESSAGE_V2, SEND, body)
